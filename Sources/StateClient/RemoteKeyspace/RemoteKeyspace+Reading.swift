public import StateModel
import StateSystem
import StateWire

extension RemoteKeyspace {
    /// The entry of `key` on the daemon's stable storage; nil if there is none.
    ///
    /// Must not be called by a completion or a receiver.
    ///
    /// - Throws: ``StateError/Code/unreachable``, or the daemon's error.
    /// - Complexity: O(*n*) in the bytes of the value, and a round trip.
    public func entry(for key: Key) throws(StateError) -> Entry? {
        try Self.entry(waitFor(Self.request(for: key)))
    }

    /// The same without blocking the thread.
    public func entry(for key: Key) async throws(StateError) -> Entry? {
        try Self.entry(await reply(to: Self.request(for: key)))
    }

    /// The entries on the daemon's stable storage that match `pattern`, after `key`, in key order,
    /// at most `limit`.
    ///
    /// They show one moment, unless they exceed what the daemon puts into one reply (256 MiB): then
    /// they come in parts. Must not be called by a completion or a receiver.
    ///
    /// - Throws: ``StateError/Code/unreachable``, or the daemon's error.
    /// - Complexity: O(*n*) in the bytes of the entries, and a round trip for each part.
    public func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) throws(StateError) -> [(
        key: Key, entry: Entry
    )] {
        var listing = Listing(pattern, after: key, limit: limit)
        while let request = listing.nextRequest { try listing.take(waitFor(request)) }
        return listing.rows
    }

    /// The same without blocking the thread.
    public func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) async throws(StateError) -> [(
        key: Key, entry: Entry
    )] {
        var listing = Listing(pattern, after: key, limit: limit)
        while let request = listing.nextRequest { try listing.take(await reply(to: request)) }
        return listing.rows
    }

    private typealias Answer = Result<Reply, StateError>

    private func waitFor(_ request: RequestWriter) -> Answer {
        link.checkMayWait()
        let box = ReplyBox()
        call(request) { box.put($0) }
        return box.wait()
    }

    private func reply(to request: RequestWriter) async -> Answer {
        await withCheckedContinuation { continuation in
            call(request) { continuation.resume(returning: $0) }
        }
    }

    private static func request(for key: Key) -> RequestWriter {
        RequestWriter([Array("STATE.GET".utf8), key.bytes])
    }

    private static func entry(_ answer: Answer) throws(StateError) -> Entry? {
        // The daemon's default is skipped, because a container has its own.
        guard let found = try Client.entry(try answer.get()), !found.isDefault else { return nil }
        return Entry(
            value: found.value,
            revision: found.revision,
            created: found.created,
            version: found.version,
            time: found.time,
            owner: found.owner,
            cause: Cause(found.writer) ?? .unknown
        )
    }
}

/// One reply, set by the connection's thread and awaited by another.
private final class ReplyBox: Sendable {
    private let reply = StateLock<Result<Reply, StateError>?>(nil)
    private let semaphore = BlockingSemaphore()

    func put(_ reply: Result<Reply, StateError>) {
        self.reply.withLock { $0 = reply }
        semaphore.signal()
    }

    func wait() -> Result<Reply, StateError> {
        semaphore.wait()
        guard let reply = reply.withLock({ $0 }) else {
            preconditionFailure("a reply was signalled before it was set")
        }
        return reply
    }
}

/// A listing in progress, in as few parts as the daemon's replies allow.
private struct Listing {
    private(set) var rows: [(key: Key, entry: Entry)] = []
    private let pattern: Pattern
    private let limit: Int
    private var last: Key?
    private var partLimit: Int
    private var isDone = false

    init(_ pattern: Pattern, after key: Key?, limit: Int) {
        self.pattern = pattern
        self.limit = limit
        last = key
        partLimit = limit
    }

    /// The next request; nil once everything has arrived.
    var nextRequest: RequestWriter? {
        guard !isDone, rows.count < limit else { return nil }
        var arguments = [Array("STATE.LIST".utf8), pattern.argument, Array("LONG".utf8)]
        if let last { arguments += [Array("AFTER".utf8), last.bytes] }
        arguments.add("LIMIT", String(part))
        return RequestWriter(arguments)
    }

    private var part: Int { min(partLimit, limit - rows.count) }

    mutating func take(_ answer: Result<Reply, StateError>) throws(StateError) {
        do throws(StateError) {
            guard let found = try answer.get().elements else {
                throw Client.unexpected("STATE.LIST")
            }
            isDone = found.count < part
            for row in found { rows.append(try Self.entry(row)) }
            last = rows.last?.key ?? last
        } catch {
            guard error.code == .tooBig, part > 1 else { throw error }
            // How many large values fit is unknown.
            partLimit = min(part / 2, 100_000)
        }
    }

    /// `[key, value, revision, created, version, time, owner, by, …]`.
    private static func entry(_ row: Reply) throws(StateError) -> (key: Key, entry: Entry) {
        guard let parts = row.elements, parts.count >= 8, let key = parts[0].byteValue,
            let value = parts[1].byteValue, let revision = parts[2].integerValue,
            let created = parts[3].integerValue, let version = parts[4].integerValue,
            let time = parts[5].integerValue, let owner = parts[6].integerValue
        else { throw Client.unexpected("STATE.LIST") }
        return (
            try Key(bytes: key),
            Entry(
                value: value,
                revision: revision,
                created: created,
                version: version,
                time: time,
                owner: UInt32(truncatingIfNeeded: owner),
                cause: parts[7].textValue.flatMap { Cause($0) } ?? .unknown
            )
        )
    }
}
