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
        /// The socket of the daemon.
        package var socket: String
        /// The members, tried in turn.
        package var endpoints: [Endpoint]
        package var certificates: Certificates?

        package init(socket: String, endpoints: [Endpoint], certificates: Certificates? = nil) {
            (self.socket, self.endpoints) = (socket, endpoints)
            self.certificates = certificates
        }
    }

    let options: Options
    private let log: (String) -> Void
    /// The index of the member that is tried next.
    private var member = 0
    private var lastLine = ""
    /// Why all keys must be compared; nil if they need not be.
    private var reasonToCompare: String?
    /// How often the daemon has refused what follows on its position.
    private var conflictCount = 0

    /// - Parameters:
    ///   - options: The daemon and the members.
    ///   - log: Called with each line for the log.
    package init(_ options: Options, log: @escaping (String) -> Void) {
        (self.options, self.log) = (options, log)
    }

    /// Follows the cluster until `isOver` returns true; that is asked at least every second.
    package func run(until isOver: () -> Bool) {
        while !isOver() {
            do throws(LinkFailure) {
                try serve(until: isOver)
            } catch {
                if case .daemon(let reason, let code) = error {
                    note(reason)
                    rest(code == "REJECTED" || code == "NOPERM" ? 10_000 : 500, isOver)
                }
            }
        }
    }

    /// One connection to the daemon, until it fails.
    private func serve(until isOver: () -> Bool) throws(LinkFailure) {
        let daemon = try DaemonConnection(options.socket)
        while !isOver() {
            do throws(LinkFailure) {
                try follow(daemon, until: isOver)
            } catch {
                switch error {
                case .daemon(let reason, let code): try recover(reason, code)
                case .mustCompare(let reason):
                    note(reason)
                    reasonToCompare = reason
                    continue
                case .cluster(let reason):
                    note(reason)
                    member += 1
                    try DaemonCalls(daemon).call("STATE.MIRROR", "AWAY", reason)
                    rest(200, isOver)
                }
            }
        }
    }

    /// The daemon has refused something.
    ///
    /// - Throws: The same failure, after which the link connects again.
    private func recover(_ reason: String, _ code: String?) throws(LinkFailure) {
        if code == "CONFLICT" {
            conflictCount += 1
            if conflictCount > 1 { reasonToCompare = reason }
        }
        throw .daemon(reason, code: code)
    }

    private func follow(_ daemon: DaemonConnection, until isOver: () -> Bool) throws(LinkFailure) {
        let position = try DaemonCalls(daemon).begin()
        let endpoint = options.endpoints[member % options.endpoints.count]
        let etcd = try EtcdClient(endpoint, options.certificates)
        var stream = MirrorStream(etcd, daemon, position)
        let difference = try stream.difference()
        if let reason = reasonToCompare ?? difference {
            try stream.compare(reason)
            reasonToCompare = nil
        }
        note("follows \(endpoint) from revision \(stream.position.revision) on")
        try stream.follow { [self] in
            conflictCount = 0
            return isOver()
        }
    }

    /// A line for the log, once in a row.
    private func note(_ line: String) {
        guard line != lastLine else { return }
        lastLine = line
        log(line)
    }

    private func rest(_ milliseconds: Int64, _ isOver: () -> Bool) {
        let end = SystemClock.monotonicMilliseconds() + milliseconds
        while !isOver(), SystemClock.monotonicMilliseconds() < end { usleep(50_000) }
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
        guard let reply, let prefix = reply["prefix"]?.byteValue,
            let node = reply["node"]?.textValue,
            let history = reply["history"]?.textValue,
            let revision = reply["revision"]?.integerValue,
            let stamp = reply["stamp"]?.textValue,
            let byteCount = reply["value_bytes"]?.integerValue
        else { throw .daemon("the daemon has another version of STATE.MIRROR", code: nil) }
        return MirrorStream.Position(
            prefix: prefix,
            node: node,
            history: history,
            revision: revision,
            stamp: stamp,
            valueByteCount: Int(byteCount)
        )
    }
}
