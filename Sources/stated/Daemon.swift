import CLinux
import Glibc
import StateEngine
import StateRules
import StateServer
import StateWire

/// The daemon's lifetime, from the claim on its sockets to their release.
struct Daemon {
    let options: Options
    /// The command line; a reload parses it again.
    let arguments: [String]
    let log: Log
    private let notifier = ServiceNotifier()

    init(options: Options, arguments: [String], log: Log) {
        self.options = options
        self.arguments = arguments
        self.log = log
    }

    /// Serves until SIGTERM or SIGINT, and logs its start and its end.
    ///
    /// - Throws: why it could not start; everything claimed by then is released.
    func run() throws(StateError) {
        // Order matters: a signal would end a thread that starts before signals are blocked.
        let signals = clinux_signalfd()
        guard signals >= 0 else { throw StateError(failed: "blocking the signals") }
        let signal = try serve(until: signals)
        log.write(.info, .stopped, "stopped by \(signal == SIGINT ? "SIGINT" : "SIGTERM")")
    }

    private func serve(until signals: Int32) throws(StateError) -> Int32 {
        // Before there are other threads: with them the kernel takes 5 to 10 ms to grow the table.
        DescriptorLimit.raise(forClients: options.configuration.limits[.clients])
        // Order matters: sockets open first, so that clients that connect while values load are
        // served afterwards. They close last, so that no other daemon serves there before the
        // values are safe.
        let inherited = try InheritedSockets.take()
        let sockets = try claimSockets(beside: inherited.listening)
        defer { for socket in sockets { socket.close() } }
        let places = sockets.map(\.path).joined(separator: " and ")
        let chosen = try ChosenBacking.make(options, log: log)
        let start = ContinuousClock.now
        let keyspace = try LoadingNotice.during(chosen.loading, notifier, log) {
            () throws(StateError) in try load(from: chosen)
        }
        let rules = RuleInstallation(
            keyspace: keyspace,
            dataDirectory: try DataDirectory.path(options),
            log: log
        )
        var isClosed = false
        defer { if !isClosed { keyspace.close() } }
        let loadTime = start.duration(to: .now)
        let server = Server(keyspace: keyspace, options: serverOptions(inherited.handedOver)) {
            memoryReport() + [("socket", places), ("log_lines_dropped", String(log.droppedCount))]
                + chosen.report()
        }
        server.refusesFiles {
            (keyspace.files?.refused ?? []).map {
                RefusedFile(path: $0.path, issue: $0.error.message)
            }
        }
        server.reloads(from: Reload(arguments, options, chosen, rules, log, notifier).source)
        for socket in sockets { server.listen(on: socket.descriptor) }
        let signal = server.run(
            signals: signals,
            onReady: {
                if !inherited.handedOver.isEmpty { notifier?.forgetDescriptors() }
                announce(places, keyspace, from: chosen.name, loadTime)
            },
            onStopping: {
                notifier?.send("STOPPING=1", "STATUS=Stopping")
                for socket in sockets { socket.stopListening() }
            }
        )
        keyspace.close()
        isClosed = true
        rules.end()
        if let loss = chosen.loss() { throw StateError(.storage, loss) }
        return signal
    }

    /// The inherited sockets and the configured one; without either, the user's own.
    private func claimSockets(
        beside inherited: [ListeningSocket]
    ) throws(StateError) -> [ListeningSocket] {
        var sockets = inherited
        let socket = options.configuration.socket
        if socket.path != nil || sockets.isEmpty {
            let path = try SocketLocation.process.serverPath(option: socket.path)
            sockets.append(
                try ListeningSocket(path: path, mode: socket.mode, group: socket.group)
            )
        }
        return sockets
    }

    /// Loads the values of the store and of files, under the rules; an error leaves nothing open.
    private func load(
        from chosen: ChosenBacking
    ) throws(StateError) -> LocalKeyspace {
        let keyspace = try LocalKeyspace(
            backing: chosen.backing,
            limits: options.configuration.limits.keyspace
        )
        do throws(StateError) {
            let rules = RuleInstallation(
                keyspace: keyspace,
                dataDirectory: try DataDirectory.path(options),
                log: log
            )
            try rules.install(options.configuration.rules, options.configuration.limits)
            try keyspace.attach(FileContainers(options, log: log)) {
                log.write(.warning, .keyFile, $0)
            }
            try keyspace.mirror(options.mirror?.prefix)
            let values = StartValues(keyspace, log)
            if let early = options.earlyDirectory { values.adopt(early) }
            if let prefix = options.configuration.credentials { values.setCredentials(prefix) }
            return keyspace
        } catch {
            keyspace.close()
            throw error
        }
    }

    /// The STATE.STATUS fields about the daemon's memory.
    private func memoryReport() -> [(String, String)] {
        let taken = [("memory", String(MachineMemory.residentByteCount))]
        guard let bound = MachineMemory.tightest else { return taken }
        return taken + [("memory_limit", bound.description)]
    }

    private func serverOptions(_ handedOver: [Int32]) -> ServerOptions {
        var server = ServerOptions(
            limits: options.configuration.limits.keyspace,
            version: Version.current
        ) {
            [log] message in log.write(message)
        }
        options.apply(to: &server, log)
        server.memoryBound = { MachineMemory.tightestForValues }
        server.handedOver = handedOver
        server.mirror = options.mirror
        if let notifier, ServiceNotifier.keepsDescriptors {
            server.handOver = { notifier.keep($0) }
        }
        if let notifier, let interval = ServiceNotifier.watchdogInterval {
            // As sd_watchdog_enabled(3) advises: twice in the time.
            let milliseconds = max(1, Int64(interval / .milliseconds(2)))
            server.watchdog = (milliseconds, { notifier.sendSignOfLife() })
        }
        return server
    }

    /// Reports that clients are served from now on.
    private func announce(
        _ places: String,
        _ keyspace: LocalKeyspace,
        from store: String,
        _ loadTime: Duration
    ) {
        notifier?.send(
            "READY=1",
            "STATUS=Serving \(keyspace.keyCount) keys on \(places)",
            within: ServiceNotifier.patienceAtStart
        )
        let milliseconds = loadTime / .milliseconds(1)
        log.write(
            .info,
            .started,
            "stated \(Version.current) serves \(places): \(keyspace.keyCount) keys at revision "
                + "\(keyspace.revision) from \(store), loaded in \(Int(milliseconds)) ms, "
                + "\(MachineMemory.residentByteCount >> 20) MiB of memory"
        )
        guard let path = options.path else { return }
        let count = options.configuration.rules.rules.count
        log.write(.info, .configured, "configured by \(path): \(counted(count, "rule"))")
    }
}
