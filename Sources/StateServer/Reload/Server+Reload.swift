import StateEngine
import StateWire

/// Replaces the configuration while clients are served: all of it at one moment, or nothing.
extension Server {
    /// Sets the source of the configuration; call it before ``run(signals:onReady:onStopping:)``.
    package func reloads(from source: ConfigurationSource) {
        services.configuration.reloader = Reloader(source, wakeup: wakeup, timers: timers)
    }

    var reloader: Reloader? { services.configuration.reloader }

    /// Sets the source of the refused files in STATE.CHECK; it is called on the loop thread.
    package func refusesFiles(_ list: @escaping () -> [RefusedFile]) {
        services.configuration.refusedFiles = list
    }

    func reloadOnSignal() {
        guard let reloader else {
            return options.log(
                .warning,
                .reloadFailed,
                "SIGHUP was ignored: \(Configuration.missing.message)"
            )
        }
        reloader.add(nil)
    }

    /// Handles the result of a read.
    func finishReload() {
        if let reloader, let read = reloader.takeRead() { finish(read, reloader) }
    }

    /// Answers the request of a read that hangs.
    func endHangingReload(at now: Int64) {
        if let reloader, let read = reloader.takeHangingRead(at: now) { finish(read, reloader) }
    }

    private func finish(
        _ read: (connection: Connection?, outcome: Reloader.Outcome),
        _ reloader: Reloader
    ) {
        let connection = read.connection
        keyspace.withCore { core in
            switch read.outcome {
            case .change(let change):
                let before = core.visibility(of: connection?.subject)
                let result = change.map { apply($0, core) }
                reloader.source.onEnd(result)
                answer(connection, core) { (context, version) throws(StateError) in
                    let sights = [before, core.visibility(of: context.connection.subject)]
                    let report = try result.mapError { $0.shown(to: sights) }.get()
                        .shown(to: sights)
                    // The revision in the reply covers all commits.
                    core.observeAll(&context.receipt)
                    context.connection.outbound.bytes.write(report, version)
                }
            case .preview(let preview):
                answer(connection, core) { (context, version) throws(StateError) in
                    context.connection.outbound.bytes.write(try preview.get(), version)
                }
            }
        }
        reloader.startNext()
    }

    private func answer(
        _ connection: Connection?,
        _ core: KeyspaceCore,
        _ body: (inout CommandContext, ProtocolVersion) throws(StateError) -> Void
    ) {
        guard let connection, !connection.isClosed else { return }
        connection.inbound.awaitsLateReply = false
        services.gate.answer(connection, core) { (context) throws(StateError) in
            try body(&context, connection.session.version)
        }
    }

    private func apply(
        _ change: ConfigurationSource.Change,
        _ core: KeyspaceCore
    ) -> ReloadReport {
        var changed = options
        var report = change(core, &changed)
        take(changed)
        rulesChanged()
        report.revision = core.revisions.newest + 1
        return report
    }

    /// Follows the rules that the keyspace has now; called under its lock.
    package func rulesChanged() {
        accessChanged()
        services.audit.follow(core)
    }

    /// Replaces the options, also for connected clients.
    private func take(_ changed: ServerOptions) {
        let changed = changed.fitted
        let isCheckMoved = changed.checkMilliseconds != options.checkMilliseconds
        services.settings.options = changed
        registry.memory.byteLimit = changed.memoryByteCount
        if isCheckMoved { scheduleCheck() }
        scheduleFrames()
        let limits = changed.frameLimits
        for connection in registry.connections {
            connection.inbound.parser.limits = limits
            connection.watches.owed?.limit = changed.outputByteCount
        }
    }
}

extension StateError {
    /// Why a configuration was refused, which may quote it, as somebody may see it.
    fileprivate func shown(to sights: [Visibility]) -> StateError {
        sights.allSatisfy(\.showsEverything) ? self : .notReloaded(code, StateError.hiddenFault)
    }

    /// What they are told instead who may not see what a configuration says.
    package static var hiddenFault: String {
        "what is wrong may quote keys and values that you may not read; the log of the daemon has it"
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

    fileprivate mutating func write(_ preview: ReloadPreview, _ version: ProtocolVersion) {
        writeMap(7, version)
        for (name, findings) in [("errors", preview.errors), ("warnings", preview.warnings)] {
            writeBulk(name)
            writeArray(findings.count)
            for lines in findings {
                writeArray(lines.count)
                for line in lines { writeBulk(line) }
            }
        }
        writeBulk("changed")
        write(preview.report.changed, version)
        writeBulk("restart")
        write(preview.report.needsRestart, version)
        writeField("checked", Int64(preview.checkedCount))
        writeField("refused", Int64(preview.refusedCount))
        writeBulk("values")
        writeArray(preview.refused.count)
        for value in preview.refused {
            writeArray(3)
            writeBulk(value.key)
            writeInteger(value.revision)
            writeBulk(value.issue)
        }
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
