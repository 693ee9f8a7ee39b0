import Glibc
import StateModel
import StateSystem
import StateWire

/// Follows a prefix of etcd for one daemon.
///
/// It remembers nothing: the daemon stores with each commit how far it is. Whatever fails, the link
/// begins anew there, and compares all keys if the history there is not the same.
package final class MirrorLink {
    /// What the link is given.
    package struct Options: Sendable {
        /// The socket of the daemon; nil: the one that `statectl` uses.
        package var socket: String?
        /// The members, tried in turn.
        package var endpoints: [Endpoint]
        package var certificates: Certificates?
        package var bounds: Bounds

        package init(
            socket: String?,
            endpoints: [Endpoint],
            certificates: Certificates? = nil,
            bounds: Bounds = Bounds()
        ) {
            (self.socket, self.endpoints) = (socket, endpoints)
            (self.certificates, self.bounds) = (certificates, bounds)
        }
    }

    /// What etcd takes in one transaction.
    package struct Bounds: Sendable {
        /// As its `--max-txn-ops`.
        package var operationCount = 128
        /// As its `--max-request-bytes`.
        package var byteCount = 1_572_864

        package init() {}
    }

    let options: Options
    private let log: (String) -> Void
    /// The socket of the first connection, and of all others: elsewhere is another store.
    private var chosen: SocketLocation.Choice?
    /// The index of the member that is tried next.
    private var member = 0
    /// When each line was logged last, on the monotonic clock in milliseconds.
    private var lines: [String: Int64] = [:]
    /// How long it rests after a failure, in milliseconds; longer after each one without a proof.
    private var restMilliseconds = MirrorLink.leastRest
    /// Why all keys must be compared; nil if they need not be.
    private var reasonToCompare: String?

    private static let (leastRest, longestRest): (Int64, Int64) = (200, 5_000)
    /// The same line is logged once in this time, in milliseconds.
    private static let lineInterval: Int64 = 60_000

    /// - Parameters:
    ///   - options: The daemon and the members.
    ///   - log: Called with each line for the log.
    package init(_ options: Options, log: @escaping (String) -> Void) {
        (self.options, self.log) = (options, log)
    }

    /// Follows the cluster; the process may be ended at any time.
    package func run() -> Never {
        while true {
            do throws(LinkFailure) {
                try serve()
            } catch {
                guard case .daemon(let reason, let code) = error else { continue }
                note(reason)
                // What is missing must be found.
                // Nor does it get past what the daemon cannot read.
                if code == "CONFLICT" || reason.hasPrefix("syntax error") {
                    reasonToCompare = reason
                }
                // Another link, another user, or keys that are in the way: not soon over.
                rest(atLeast: code == "REJECTED" || code == "NOPERM" ? 10_000 : 0)
            }
        }
    }

    /// One connection to the daemon, until it fails.
    private func serve() throws(LinkFailure) {
        let daemon = try DaemonConnection(choice())
        chosen = daemon.choice
        while true {
            do throws(LinkFailure) {
                try follow(daemon)
            } catch {
                switch error {
                case .daemon: throw error
                case .mustCompare(let reason):
                    note(reason)
                    reasonToCompare = reason
                case .cluster(let reason):
                    note(reason)
                    member += 1
                    try DaemonCalls(daemon).call("STATE.MIRROR", "AWAY", reason)
                }
                rest()
            }
        }
    }

    private func choice() throws(LinkFailure) -> SocketLocation.Choice {
        if let chosen { return chosen }
        do throws(StateError) {
            return try SocketLocation.process.clientChoice(option: options.socket)
        } catch {
            throw .daemon(error.message, code: nil)
        }
    }

    private func follow(_ daemon: DaemonConnection) throws(LinkFailure) {
        let position = try DaemonCalls(daemon).begin()
        let endpoint = options.endpoints[member % options.endpoints.count]
        let etcd = try EtcdClient(endpoint, options.certificates)
        var stream = MirrorStream(etcd, daemon, position)
        let difference = try stream.difference()
        if let reason = reasonToCompare ?? difference {
            try stream.compare(reason)
            reasonToCompare = nil
        }
        try stream.follow(options.bounds) { [self] in
            restMilliseconds = MirrorLink.leastRest
            note("follows \(endpoint)")
        }
    }

    /// A line for the log, if it was not there lately.
    private func note(_ line: String) {
        let now = SystemClock.monotonicMilliseconds()
        lines = lines.filter { now - $0.value < MirrorLink.lineInterval }
        guard lines.updateValue(now, forKey: line) == nil else { return }
        log(line)
    }

    private func rest(atLeast least: Int64 = 0) {
        poll(nil, 0, Int32(max(least, restMilliseconds)))
        restMilliseconds = min(2 * restMilliseconds, MirrorLink.longestRest)
    }
}

/// Calls of the daemon that wait for their replies.
struct DaemonCalls {
    let daemon: DaemonConnection
    private static let patience: Int64 = 30_000

    init(_ daemon: DaemonConnection) { self.daemon = daemon }

    /// - Throws: ``LinkFailure/daemon(_:code:)``.
    @discardableResult
    func call(_ words: String...) throws(LinkFailure) -> Reply? {
        daemon.send(words.map { Array($0.utf8) })
        return try drain()
    }

    /// Waits until everything is answered.
    ///
    /// - Returns: The last reply.
    @discardableResult
    func drain() throws(LinkFailure) -> Reply? {
        let deadline = SystemClock.monotonicMilliseconds() + DaemonCalls.patience
        var last: Reply?
        while true {
            try daemon.flush()
            last = try daemon.receive().last ?? last
            if daemon.isIdle { return last }
            let left = deadline - SystemClock.monotonicMilliseconds()
            guard left > 0 else { throw .daemon("the daemon does not answer", code: nil) }
            let events = Int16(POLLIN) | (daemon.wantsWrite ? Int16(POLLOUT) : 0)
            var waiting = pollfd(fd: daemon.descriptor, events: events, revents: 0)
            poll(&waiting, 1, Int32(clamping: left))
        }
    }

    /// Becomes the link of the daemon.
    func begin() throws(LinkFailure) -> MirrorStream.Position {
        let reply = try call("STATE.MIRROR", "BEGIN")
        // Those that came before were not sent: the daemon gives them again.
        _ = daemon.takeBatches()
        guard let reply, let prefix = reply["prefix"]?.byteValue,
            let node = reply["node"]?.textValue,
            let history = reply["history"]?.textValue,
            let revision = reply["revision"]?.integerValue,
            let stamp = reply["stamp"]?.textValue,
            let byteCount = reply["value_bytes"]?.integerValue,
            let commandByteCount = reply["command_bytes"]?.integerValue
        else { throw .daemon("the daemon has another version of STATE.MIRROR", code: nil) }
        return MirrorStream.Position(
            prefix: prefix,
            node: node,
            history: history,
            revision: revision,
            stamp: stamp,
            valueByteCount: Int(byteCount),
            commandByteCount: Int(commandByteCount)
        )
    }
}
