import CLinux
import StateEngine
import StateWire

/// The channels of one kind, in the order in which they began; a listing goes through them in slices
/// while they change.
///
/// The order of those that a client may see does not depend on others, which it may not know of.
struct ChannelList {
    /// Nil where a channel has ended.
    private(set) var channels: [Channel?] = []
    private var endedCount = 0
    private var listings: [ChannelListing] = []

    mutating func append(_ channel: Channel) {
        channel.place = channels.count
        channels.append(channel)
    }

    /// - Complexity: O(1) amortized.
    mutating func remove(_ channel: Channel) {
        channels[channel.place] = nil
        endedCount += 1
        if endedCount > 64, endedCount > channels.count / 2 { close() }
    }

    /// Closes the gaps.
    private mutating func close() {
        for listing in listings { listing.noteGaps(in: channels) }
        channels.removeAll { $0 == nil }
        for (place, channel) in channels.enumerated() { channel?.place = place }
        endedCount = 0
    }

    mutating func begin(_ listing: ChannelListing) { listings.append(listing) }
    mutating func end(_ listing: ChannelListing) { listings.removeAll { $0 === listing } }
}

/// PUBSUB CHANNELS: the names that a client may see and that have subscribers.
///
/// A channel that has subscribers from the first slice to the last is listed once.
final class ChannelListing: SlicedListing {
    private let channels: Channels
    private let kind: Channel.Kind
    private let pattern: Pattern?
    private let subject: Subject
    private let byteLimit: Int
    private let visitLimit: Int
    private var rows = ByteBuffer(roomInFront: true)
    private(set) var count = 0
    private(set) var visitedCount = 0
    /// Channels from this place on were visited; nil before the first slice.
    private var end: Int?

    init(
        _ channels: Channels,
        _ kind: Channel.Kind,
        matching pattern: Pattern?,
        for subject: Subject,
        byteLimit: Int,
        visitLimit: Int
    ) {
        (self.channels, self.kind, self.pattern) = (channels, kind, pattern)
        (self.subject, self.byteLimit, self.visitLimit) = (subject, byteLimit, visitLimit)
    }

    var byteCount: Int { rows.footprint }

    /// The gaps among the channels will be closed.
    fileprivate func noteGaps(in channels: [Channel?]) {
        end = end.map { channels[..<$0].count { $0 != nil } }
    }

    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        if end == nil { channels[list: kind].begin(self) }
        var end = end ?? channels[list: kind].channels.count
        defer { self.end = end }
        let visibility = core.visibility(of: subject)
        while end > 0 {
            end -= 1
            if let channel = channels[list: kind].channels[end] { write(channel, visibility) }
            visitedCount += 1
            guard rows.count <= byteLimit else {
                throw replyTooBig(byteLimit, "use a narrower glob")
            }
            guard visitedCount <= visitLimit else { throw visitsTooMuch(visitLimit) }
            if visitedCount % 32 == 0, clinux_monotonic_nanoseconds() >= deadline { return false }
        }
        return true
    }

    private func write(_ channel: Channel, _ visibility: Visibility) {
        channel.bytes.withUnsafeBytes { name in
            guard pattern?.matches(name) ?? true,
                visibility.mayReceive(ChannelKey(name))
            else { return }
            rows.writeBulk(name)
            count += 1
        }
    }

    func end(in core: KeyspaceCore) { channels[list: kind].end(self) }

    func writeRows(to output: inout ByteBuffer) { output.append(taking: &rows) }
}
