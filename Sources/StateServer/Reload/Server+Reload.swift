import StateEngine
import StateWire

/// A configuration takes the place of another while clients are served: all of it at one moment, or nothing.
extension Server {
    /// Says where the configuration comes from; before ``run(signals:onReady:onStopping:)``.
    package func reloads(from source: ConfigurationSource) {
        reloader = Reloader(source, wakeup: wakeup)
    }

    /// Says what STATE.CHECK tells of files that are refused; it is asked on the loop thread.
    package func refusesFiles(_ list: @escaping () -> [RefusedFile]) {
        dispatcher.refusedFiles = list
    }

    /// Has the configuration read again for a connection, which waits for what comes of it.
    func reload(for connection: Connection) throws(StateError) {
        guard let reloader else { throw Server.noConfiguration }
        reloader.add(connection)
        connection.awaitsLateReply = true
    }

    func reloadOnSignal() {
        guard let reloader else {
            return options.log(
                .warning,
                "SIGHUP changes nothing: \(Server.noConfiguration.message)"
            )
        }
        reloader.add(nil)
    }

    private static let noConfiguration = StateError(
        .err,
        "there is no configuration to read again; see --config in stated --help"
    )

    /// Takes over what was read.
    func finishReload() {
        guard let reloader, let (connection, outcome) = reloader.takeRead() else { return }
        keyspace.withCore { core in
            let result = Result { () throws(StateError) in try apply(outcome, core) }
            if case .success(let report) = result, core.revisions.newest >= report.revision {
                reloader.unsettled = Reloader.Unsettled(report: report)
            } else {
                reloader.source.onEnd(result)
            }
            guard let connection, !connection.isClosed else { return }
            connection.awaitsLateReply = false
            dispatcher.answer(connection, core) { (receipt) throws(StateError) in
                let report = try result.get()
                // Keys may have moved to another backing.
                core.observeAll(&receipt)
                connection.output.write(report, connection.version)
            }
        }
        reloader.startNext()
    }

    private func apply(
        _ outcome: Result<ConfigurationSource.Change, StateError>,
        _ core: KeyspaceCore
    ) throws(StateError) -> ReloadReport {
        let change = try outcome.get()
        let revision = core.revisions.newest + 1
        var changed = options
        var report = try change(core, &changed)
        take(changed)
        dispatcher.accessChanged(core)
        report.revision = revision
        reloader?.revision = revision
        // It has moved all that there was to move.
        reloader?.movingBack = nil
        return report
    }

    /// Exchanges the options, for clients that are there too.
    func take(_ changed: ServerOptions) {
        let changed = changed.fitted
        options = changed
        dispatcher.options = changed
        registry.memory.byteLimit = changed.memoryByteCount
        let limits = changed.frameLimits
        for connection in registry.connections {
            connection.parser.limits = limits
            connection.owed?.limit = changed.outputByteCount
        }
    }
}

extension ByteBuffer {
    fileprivate mutating func write(_ report: ReloadReport, _ version: ProtocolVersion) {
        writeMap(3, version)
        writeField("revision", report.revision)
        writeBulk("changed")
        write(report.changed, version)
        writeBulk("restart")
        write(report.needsRestart, version)
    }

    /// Each as `[rule, keys, option, old, new]`.
    private mutating func write(_ changes: [ReloadReport.Change], _ version: ProtocolVersion) {
        writeArray(changes.count)
        for change in changes {
            writeArray(5)
            writeInteger(Int64(change.rule))
            writeBulk(change.keys)
            writeBulk(change.option)
            for text in [change.old, change.new] {
                if let text { writeBulk(text) } else { writeNull(version) }
            }
        }
    }
}
