import Glibc
import StateModel
import StateSystem
import StateWire

/// The events of one member of etcd on their way to the daemon.
struct MirrorStream {
    /// How far the daemon is, as STATE.MIRROR BEGIN returns it.
    struct Position {
        var prefix: [UInt8]
        var node: String
        /// The cluster; empty before the first comparison.
        var history: String
        var revision: Int64
        /// As ``MirrorStamp/text``.
        var stamp: String
        var valueByteCount: Int
        var commandByteCount: Int
    }

    let etcd: EtcdClient
    let daemon: DaemonConnection
    var position: Position
    var filter: MirrorFilter
    let beatKey: [UInt8]
    private let sessionKey: [UInt8]

    /// The event that proves that nothing is missing.
    var beat: Beat?
    /// A question instead of a beat that was refused.
    var proof: Question?
    var nextBeatAt: Int64 = 0
    var provedCount = 0
    /// When the position was sent last.
    private var keptAt = SystemClock.monotonicMilliseconds()
    /// The newest revision that was seen in the stream.
    var seenRevision: Int64
    var stamp: MirrorStamp
    /// Sends what clients of the daemon change; nil until the watch begins.
    var writer: MirrorWriter?

    /// Two questions: which key was set last and how many there are, and how many there were.
    struct Question {
        let sentAt: Int64
        /// The newest revision that had come.
        let seen: Int64
        var askedAt: Int64
        var call: HTTP2Connection.Call
        /// The answer to the first one.
        var count: Int64?
    }

    struct Beat {
        let value: [UInt8]
        let sentAt: Int64
        let call: HTTP2Connection.Call
    }

    /// Milliseconds between two beats.
    static let interval: Int64 = 2_000
    /// How long etcd may take to store a beat and to send it.
    static let patience: Int64 = 3_000
    /// How often the position is stored if no change does it.
    private static let keepInterval: Int64 = 60_000

    init(_ etcd: EtcdClient, _ daemon: DaemonConnection, _ position: Position) {
        (self.etcd, self.daemon, self.position) = (etcd, daemon, position)
        filter = MirrorFilter(prefix: position.prefix, valueByteCount: position.valueByteCount)
        beatKey = filter.beatKey(of: position.node)
        sessionKey = filter.sessionKey(of: position.node)
        seenRevision = position.revision
        stamp = MirrorStamp(position.stamp) ?? MirrorStamp()
    }

    // MARK: The comparison

    /// Compares all keys; the differences become one commit of the daemon.
    mutating func compare(_ reason: String) throws(LinkFailure) {
        // First a beat, so that the position has a stamp: without one, all is compared again next time.
        let value = MirrorStream.randomValue()
        try etcd.tryCall(.put, EtcdMessages.put(beatKey, value))
        filter.removeAll()
        var (page, limit): (EtcdRange, Int64) = (try range(from: position.prefix, 16, at: 0), 16)
        let header = page.header
        let calls = DaemonCalls(daemon)
        daemon.send("STATE.MIRROR", "RESYNC", "\(header.clusterID)", reason)
        stamp = MirrorStamp()
        while true {
            try send(rows: page.entries)
            for entry in page.entries where entry.key == beatKey {
                stamp.beat = MirrorStamp.beat(entry)
            }
            guard page.hasMore else { break }
            guard let last = page.entries.last, page.header.clusterID == header.clusterID else {
                throw .cluster("\(etcd.endpoint) has sent what cannot be read")
            }
            let byteCount = page.entries.reduce(0) { $0 + $1.key.count + $1.value.count } + 1
            // About 4 MiB a page.
            limit = min(max(1, (4 << 20) * Int64(page.entries.count) / Int64(byteCount)), 8 * limit)
            page = try range(from: last.key + [0], min(limit, 10_000), at: header.revision)
        }
        stamp.changes = try changes(at: header.revision)
        stamp.refusedCount = filter.refused.count
        try calls.call("STATE.MIRROR", "SYNCED", "\(header.revision)", stamp.text)
        position.history = "\(header.clusterID)"
        position.revision = header.revision
        seenRevision = header.revision
    }

    private func range(
        from key: [UInt8],
        _ limit: Int64,
        at revision: Int64
    ) throws(LinkFailure) -> EtcdRange {
        let end = EtcdMessages.end(of: position.prefix)
        return try etcd.range(key, end: end, limit: limit, revision: revision, patience: 30_000)
    }

    /// The rows of one command, without the last of them.
    private var rowsByteCount: Int { min(1 << 20, position.commandByteCount / 4) }

    private mutating func send(rows: [EtcdEntry]) throws(LinkFailure) {
        let head = ["STATE.MIRROR", "ROWS"].map { Array($0.utf8) }
        var (arguments, byteCount) = (head, 0)
        for row in rows {
            let next = filter.arguments(of: row)
            arguments += next
            byteCount += next.reduce(0) { $0 + $1.count }
            guard byteCount > rowsByteCount else { continue }
            daemon.send(arguments)
            (arguments, byteCount) = (head, 0)
        }
        if arguments.count > head.count { daemon.send(arguments) }
        if daemon.isFull { try DaemonCalls(daemon).drain() }
    }

    // MARK: Following

    /// Follows the member until it fails.
    ///
    /// - Parameters:
    ///   - bounds: What etcd takes in one transaction.
    ///   - prove: Called when the daemon has taken what was sent, with a proof.
    /// - Throws: ``LinkFailure``.
    mutating func follow(
        _ bounds: MirrorLink.Bounds,
        onProof prove: () -> Void
    ) throws(LinkFailure) {
        writer = try MirrorWriter(etcd, filter, position.node, bounds)
        try etcd.watch(position.prefix, from: position.revision + 1)
        while true {
            try etcd.flush()
            try daemon.flush()
            let ready = wait()
            let before = provedCount
            if ready.daemon, try !daemon.receive().isEmpty, daemon.isIdle, before > 0 { prove() }
            for batch in daemon.takeBatches() { try writer?.add(batch) }
            if !daemon.isFull {
                if ready.etcd || etcd.hasInput { try etcd.receive() }
                try take(etcd.takeEvents())
                if let words = try writer?.take(filter) { send(words) }
            }
            // Order matters: the next batch may have come before the answer to the one before.
            if let words = try writer?.send(filter) { send(words) }
            try beatIfDue()
            keepIfDue()
        }
    }

    /// Waits until something has come, or is due.
    private func wait() -> (daemon: Bool, etcd: Bool) {
        // While one is under way, the next does not matter.
        let due = beat.map { $0.sentAt + MirrorStream.patience } ?? nextBeatAt
        let left = due - SystemClock.monotonicMilliseconds()
        func events(_ reads: Bool, _ writes: Bool) -> Int16 {
            (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0)
        }
        // An end that is not read would be reported again and again.
        let source = daemon.isFull && !etcd.wantsWrite ? -1 : etcd.descriptor
        var waiting = [
            pollfd(fd: daemon.descriptor, events: events(true, daemon.wantsWrite), revents: 0),
            pollfd(fd: source, events: events(!daemon.isFull, etcd.wantsWrite), revents: 0),
        ]
        poll(&waiting, 2, daemon.isFull ? 500 : Int32(min(max(left, 1), 500)))
        return (waiting[0].revents != 0, waiting[1].revents != 0)
    }

    /// Makes a commit of the events of each revision.
    private mutating func take(_ events: [EtcdEvent]) throws(LinkFailure) {
        var start = 0
        while start < events.count {
            let revision = events[start].entry.modRevision
            let end =
                events[start...].firstIndex { $0.entry.modRevision != revision } ?? events.count
            guard revision > seenRevision else {
                throw .mustCompare("revision \(revision) came after revision \(seenRevision)")
            }
            seenRevision = revision
            try commit(events[start..<end], revision)
            start = end
        }
    }

    private mutating func commit(
        _ events: ArraySlice<EtcdEvent>,
        _ revision: Int64
    ) throws(LinkFailure) {
        stamp.changes = MirrorStamp.changes(events.lazy.filter { !$0.isDelete }.map(\.entry))
        var changes: [[UInt8]] = []
        var session: [UInt8]?
        var signatures: [(node: [UInt8], value: [UInt8])] = []
        for event in events {
            if let node = filter.signer(event.entry.key), !event.isDelete {
                signatures.append((node, event.entry.value))
                continue
            }
            changes += filter.arguments(of: event)
            if event.entry.key == beatKey { try note(event) }
            if event.entry.key == sessionKey { session = event.entry.value }
        }
        // A link signs with one key. If others were written with it, nobody knows whose the rest is.
        let node = Array(position.node.utf8)
        if let own = signatures.first(where: { $0.node == node })
            ?? (signatures.count == 1 ? signatures[0] : nil)
        {
            changes.insert(contentsOf: [Array("BY".utf8), own.node, own.value], at: 0)
        }
        if let session, let words = try writer?.note(session: session) {
            send(words)
        }
        guard !changes.isEmpty else { return }
        let byteCount = changes.reduce(0) { $0 + $1.count + 32 }
        guard byteCount <= min(16 << 20, position.commandByteCount / 2) else {
            throw .mustCompare("revision \(revision) is too large for one command")
        }
        send(changes, revision)
    }

    func send(_ words: [String]) { daemon.send(words.map { Array($0.utf8) }) }

    private mutating func send(_ changes: [[UInt8]], _ revision: Int64) {
        stamp.refusedCount = filter.refused.count
        let words = ["COMMIT", "\(position.revision)", "\(revision)", stamp.text]
        daemon.send((["STATE.MIRROR"] + words).map { Array($0.utf8) } + changes)
        position.revision = revision
        keptAt = SystemClock.monotonicMilliseconds()
    }

    /// Stores the position now and then, so that etcd may compact what is behind it.
    private mutating func keepIfDue() {
        let now = SystemClock.monotonicMilliseconds()
        guard seenRevision > position.revision, now - keptAt > MirrorStream.keepInterval else {
            return
        }
        send([], seenRevision)
    }

    static func randomValue() -> [UInt8] {
        Array(String(UInt64.random(in: .min ... .max), radix: 36).utf8)
    }
}
