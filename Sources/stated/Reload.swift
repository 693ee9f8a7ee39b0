import CLinux
import StateEngine
import StateRules
import StateServer

/// Reads the configuration again while clients are served, and takes it over.
///
/// What changes is used by the thread that reads the file and by the loop, one after the other, for there is one reload at a time; all
/// else is constant: the proof of `@unchecked Sendable`.
final class Reload: @unchecked Sendable {
    private let arguments: [String]
    private let installation: RuleInstallation
    private let chosen: ChosenBacking
    private let log: Log
    private let notifier: ServiceNotifier?
    /// What is in force.
    private var running: Options
    /// What was before the last reload, and whether that has moved files.
    private var former: (options: Options, hasMovedFiles: Bool)?
    /// What brings files back to where they were; it ends before the next reading begins to change anything.
    private let movingBack = StateLock<WorkerThread?>(nil)
    /// Whether they are not where ``running`` says, for they could not be brought back.
    private let hasFilesAstray = StateLock(false)

    /// Takes the command line, whose options count more than what the file says, now as at the start, and what it said then.
    init(
        _ arguments: [String],
        _ options: Options,
        _ installation: RuleInstallation,
        _ chosen: ChosenBacking,
        _ log: Log,
        _ notifier: ServiceNotifier?
    ) {
        (self.arguments, running, self.chosen) = (arguments, options, chosen)
        self.installation = installation
        (self.log, self.notifier) = (log, notifier)
    }

    var source: ConfigurationSource {
        ConfigurationSource(
            read: { () throws(StateError) in try self.read() },
            undo: { self.undo($0, &$1) },
            onMoved: { self.installation.noteMoved($0) },
            onEnd: { self.end($0) }
        )
    }

    /// On a thread of its own.
    private func read() throws(StateError) -> ConfigurationSource.Change {
        notifier?.send(
            "RELOADING=1",
            "MONOTONIC_USEC=\(clinux_monotonic_nanoseconds() / 1_000)",
            "STATUS=Reading the configuration again"
        )
        guard case .serve(let options) = try Request(arguments: arguments),
            options.configuration != nil
        else {
            throw StateError(
                .err,
                "there is no configuration to read again; see --config in stated --help"
            )
        }
        // Else the files of what is in force might come after those of what was read.
        movingBack.withLock { $0.take() }?.join()
        try installation.prepare(options.rules)
        let report = running.changes(to: options)
        let hasMovedFiles = try moveFiles(options)
        return { (core, server) throws(StateError) in
            var report = report
            do throws(StateError) {
                // Order matters: what may refuse the whole comes first.
                report.movedKeyCount = try self.exchange(options.rules, core)
            } catch {
                if hasMovedFiles { self.moveFilesBack() }
                throw error
            }
            self.take(options, core, &server)
            self.former?.hasMovedFiles = hasMovedFiles
            return report
        }
    }

    /// Has keys live in the directories of other options, before their rules hold.
    ///
    /// - Returns: Whether these are others.
    private func moveFiles(_ options: Options) throws(StateError) -> Bool {
        let isSame =
            running.rules.fileRules == options.rules.fileRules
            && running.limits.fileCount == options.limits.fileCount
            && running.limits.valueByteCount == options.limits.valueByteCount
            && !hasFilesAstray.withLock { $0 }
        let files = FileContainers(options, log: log)
        if isSame {
            // Another directory at a place is used from a reload on; one that cannot be used stays as it is, and is reported.
            guard installation.keyspace.files?.isAnyAstray ?? false,
                (try? files?.check()) != nil
            else { return false }
        } else {
            try files?.check()
        }
        do throws(StateError) {
            try installation.keyspace.exchange(
                files: files,
                rules: options.rules.byKey,
                notice: warning
            )
        } catch {
            // Those of before are tried again every second; a reload says why they are not in use.
            if installation.keyspace.files?.isAnyLost ?? false {
                hasFilesAstray.withLock { $0 = true }
            }
            throw error
        }
        hasFilesAstray.withLock { $0 = false }
        return true
    }

    private var warning: @Sendable (String) -> Void {
        { [log] in log.write(.warning, $0) }
    }

    /// The rules that files were moved for do not hold.
    private func moveFilesBack() {
        let thread = WorkerThread(name: "files back")
        thread.start { [self, running] in
            do throws(StateError) {
                try installation.keyspace.exchange(
                    files: FileContainers(running, log: log),
                    rules: running.rules.byKey,
                    notice: warning
                )
            } catch {
                hasFilesAstray.withLock { $0 = true }
                log.write(
                    .error,
                    "keys are not back in their files until the next reload: \(error.message)"
                )
            }
        }
        movingBack.withLock { $0 = thread }
    }

    /// In the loop, under the keyspace's lock: storage refused what the last reload has moved.
    private func undo(_ core: KeyspaceCore, _ server: inout ServerOptions) {
        guard let (options, hasMovedFiles) = former else { return }
        core.restore(rules: options.rules.byKey)
        take(options, core, &server)
        if hasMovedFiles { moveFilesBack() }
    }

    /// In the loop, under the keyspace's lock: what the options say beside the rules.
    private func take(
        _ options: Options,
        _ core: KeyspaceCore,
        _ server: inout ServerOptions
    ) {
        core.limits = options.limits
        chosen.keep(options.history, options.reserveByteCount)
        options.apply(to: &server, log)
        let retired = RetiredOptions(former?.options)
        former = (running, false)
        running = options.keepingPlaces(of: running)
        retired.release()
    }

    /// The one place where rules take the place of others while clients are served.
    private func exchange(_ rules: RuleTable, _ core: KeyspaceCore) throws(StateError) -> Int {
        let cause = core.retainCause(.thisProcess)
        defer { core.release(cause) }
        return try core.exchange(rules: rules.byKey, cause: cause, at: LocalKeyspace.now())
    }

    private func end(_ result: Result<ReloadReport, StateError>) {
        switch result {
        case .success(let report):
            log.write(.notice, "reloaded: \(report.summary)")
            notifier?.send("READY=1", "STATUS=Serving; the configuration was read again")
        case .failure(let error):
            log.write(.error, "not reloaded, everything is as it was: \(error.message)")
            notifier?.send("READY=1", "STATUS=Serving; not reloaded: \(error.message)")
        }
    }
}

extension ReloadReport {
    /// As many changes stand in a line of the log.
    private static let shownChangeCount = 10

    /// One line.
    fileprivate var summary: String {
        let all =
            changed
            + needsRestart.map { change in
                var change = change
                change.option += " (needs a restart)"
                return change
            }
        var parts = all.prefix(ReloadReport.shownChangeCount).map(\.summary)
        let rest = all.count - parts.count
        if rest > 0 { parts.append("and \(rest) more") }
        if parts.isEmpty { parts.append("nothing has changed") }
        return parts.joined(separator: "; ") + "; from revision \(revision) on"
    }
}

extension ReloadReport.Change {
    fileprivate var summary: String {
        let place = rule == 0 ? "" : "rule \(rule) (\(String(decoding: keys, as: UTF8.self))) "
        return "\(place)\(option): \(old ?? "none") → \(new ?? "none")"
    }
}

/// Options that nobody but this holds any more; to free 5,000 rules took the loop 70 ms.
///
/// The loop thread has it up to ``release()``, and the thread that this starts from then on: the proof of `@unchecked Sendable`.
private final class RetiredOptions: @unchecked Sendable {
    private var options: Options?

    init(_ options: Options?) { self.options = options }

    /// Has them freed on a thread of its own.
    func release() {
        let thread = WorkerThread(name: "release")
        thread.start { self.options = nil }
        thread.detach()
    }
}
