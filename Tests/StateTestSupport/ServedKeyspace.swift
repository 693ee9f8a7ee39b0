import Glibc
package import StateEngine
package import StateServer
import StateWire

/// A keyspace served by a loop thread of its own, on a socket in a directory of its own, until the last reference goes.
package final class ServedKeyspace {
    package let keyspace: LocalKeyspace
    /// What the server has logged.
    package let log = Observed<[String]>([])
    package var socketPath: String { directory.path(of: "s") }

    private let directory: TemporaryDirectory
    private let backing: any Backing
    private let listener: ListeningSocket
    private let thread = WorkerThread(name: "served")
    /// Reading and writing end of what stands for a signalfd.
    private var signals: [Int32] = [-1, -1]
    private var isStopped = false
    private var probe: Peer?
    let pending = PendingRules()

    /// Serves a backing, with the default options but for what `adjust` changes; its limits are the keyspace's too.
    ///
    /// `prepare` is called on the loop thread before it serves.
    package init(
        _ backing: any Backing = MemoryBacking(),
        _ adjust: (inout ServerOptions) -> Void = { _ in },
        preparing prepare: @escaping @Sendable (Server) -> Void = { _ in }
    ) throws {
        self.backing = backing
        directory = try TemporaryDirectory()
        var options = ServerOptions(version: "0.0.0") { [log] message in
            log.update { $0.append("<\(message.level.rawValue)> \(message.text)") }
        }
        adjust(&options)
        keyspace = try LocalKeyspace(backing: backing, limits: options.limits)
        if let mirror = options.mirror { try keyspace.mirror(mirror.prefix) }
        listener = try ListeningSocket(path: directory.path(of: "s"), mode: 0o600)
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &signals) == 0 else {
            throw SystemFailure(call: "socketpair", errno)
        }
        let (descriptor, reader) = (listener.descriptor, signals[0])
        thread.start { [keyspace, options, pending] in
            let server = Server(keyspace: keyspace, options: options) {
                pending.takeRules()
                return []
            }
            pending.server = server
            prepare(server)
            server.listen(on: descriptor)
            _ = server.run(signals: reader, onReady: {}, onStopping: {})
        }
    }

    deinit { stop() }

    /// Stops as SIGTERM does, and waits until it has; a held backing lets its commits go.
    package func stop() {
        guard !isStopped else { return }
        isStopped = true
        requestStop()
        (backing as? HeldBacking)?.open()
        thread.join()
        keyspace.close()
        listener.close()
        for descriptor in signals { close(descriptor) }
    }

    /// Delivers SIGTERM, as a signalfd tells of it.
    package func requestStop() {
        var info = [UInt8](repeating: 0, count: 128)
        info[0] = UInt8(SIGTERM)
        _ = write(signals[1], info, info.count)
    }

    // MARK: Clients

    /// A new connection.
    package func connect(_ version: Int = 2) throws -> Peer {
        let peer = try Peer(socketPath)
        if version == 3 { _ = try peer.ask("HELLO 3") }
        return peer
    }

    /// Waits until everything that was sent before has been read, carried out and, as far as it may be, answered.
    ///
    /// What is ready first is handled first, so it suffices that two requests in succession were answered.
    package func catchUp() throws {
        let probe = try probe ?? connect()
        self.probe = probe
        for _ in 0..<2 {
            let reply = try probe.ask("PING")
            guard reply == .simple("PONG") else { throw SystemFailure("PING: \(reply.shown)") }
        }
    }

    func askForStatus() throws {
        try catchUp()
        _ = try probe?.ask("STATE.STATUS")
    }

    /// Waits until so many clients are left, the probe not counted.
    package func waitForClients(_ count: Int) throws {
        try waitUntil("\(count) clients") {
            try probe?.ask("STATE.STATUS")["clients"] == .integer(Int64(count + 1))
        }
    }

    /// Asks again and again, for 120 seconds at most; each time the loop has had a turn.
    package func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(120)
        repeat {
            try catchUp()
            if try condition() { return }
        } while ContinuousClock.now < deadline
        throw SystemFailure("waited in vain for \(what)")
    }

    // MARK: The keyspace

    /// What is wrong with the keyspace, once all clients have gone; empty where nothing is.
    package func faultsAfterLeaving() throws -> [String] {
        try waitForClients(0)
        return keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
    }

    /// The values on stable storage.
    package func durable() -> [String: String] {
        var values: [String: String] = [:]
        keyspace.withCore { core in
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                values[record.key.text] = record.value?.text
                return true
            }
        }
        return values
    }
}
