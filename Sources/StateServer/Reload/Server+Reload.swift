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
        connection.isReadingHistory = true
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
            if case .success(let report) = result, core.newestRevision >= report.revision {
                reloader.unsettled = report
            } else {
                reloader.source.onEnd(result)
            }
            guard let connection, !connection.isClosed else { return }
            connection.isReadingHistory = false
            dispatcher.answer(connection, core) { () throws(StateError) in
                let report = try result.get()
                // Keys may have moved to another backing.
                core.observeAll()
                connection.output.write(report, connection.version)
            }
        }
        if reloader.unsettled == nil { reloader.startNext() }
    }

    /// Takes note of what became of the keys that a reload has moved; where storage refused them, what held before holds again.
    ///
    /// Called under the keyspace's lock.
    func settleReload(_ outcome: LocalKeyspace.Outcome) {
        guard let reloader, let report = reloader.unsettled else { return }
        switch outcome {
        case .durable(let revision):
            guard revision >= report.revision else { return }
            reloader.source.onEnd(.success(report))
        case .failed(let revision, let error):
            guard revision <= report.revision else { return }
            var changed = options
            reloader.source.undo(core, &changed)
            take(changed)
            dispatcher.accessChanged(core)
            reloader.source.onEnd(.failure(error))
        case .reopened, .unopened: return
        }
        reloader.unsettled = nil
        reloader.startNext()
    }

    private func apply(
        _ outcome: Result<ConfigurationSource.Change, StateError>,
        _ core: KeyspaceCore
    ) throws(StateError) -> ReloadReport {
        let change = try outcome.get()
        let revision = core.newestRevision + 1
        var changed = options
        var report = try change(core, &changed)
        take(changed)
        dispatcher.accessChanged(core)
        report.revision = revision
        return report
    }

    /// Exchanges the options, for clients that are there too.
    private func take(_ changed: ServerOptions) {
        options = changed
        dispatcher.options = changed
        let limits = changed.frameLimits
        for connection in registry.connections {
            connection.parser.limits = limits
            for watcher in connection.watchers.values {
                watcher.watcher.latestByteLimit = changed.outputByteCount
            }
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
