import CLinux
import Glibc
import StateEngine
import StateRules
import StateServer

/// Reloads the configuration while clients are served.
///
/// `@unchecked Sendable`: the thread that reads the files and the loop use the mutable state one
/// after the other, as there is one reload at a time: a thread that the loop no longer waits for
/// ends in ``ReloadWait/during(_:_:)``. Everything else is constant.
final class Reload: @unchecked Sendable {
    private let arguments: [String]
    private let chosen: ChosenBacking
    private let rules: RuleInstallation
    private let log: Log
    private let notifier: ServiceNotifier?
    /// Where keys are stored, by the rules of the start.
    private let locations: [RuleDescription]
    private let fileRules: [FileRule]
    /// The options in force.
    private var running: Options

    /// Takes the command line, whose options override the file as at the start, and the options in
    /// force.
    init(
        _ arguments: [String],
        _ options: Options,
        _ chosen: ChosenBacking,
        _ rules: RuleInstallation,
        _ log: Log,
        _ notifier: ServiceNotifier?
    ) {
        (self.arguments, running, self.chosen, self.rules) = (arguments, options, chosen, rules)
        let table = options.configuration.rules
        (locations, fileRules) = (table.locations, table.fileRules)
        (self.log, self.notifier) = (log, notifier)
    }

    var source: ConfigurationSource {
        ConfigurationSource(
            read: { (wait) throws(StateError) in try self.read(wait) },
            preview: { (wait, subject) throws(StateError) in try self.preview(wait, subject) },
            onEnd: { self.end($0) }
        )
    }

    /// On a thread of its own.
    private func read(_ wait: ReloadWait) throws(StateError) -> ConfigurationSource.Change {
        notifier?.send(
            "RELOADING=1",
            "MONOTONIC_USEC=\(clinux_monotonic_nanoseconds() / 1_000)",
            "STATUS=Reloading the configuration"
        )
        let findings = ConfigurationFindings(wait)
        do throws(StateError) {
            let options = try readOptions(findings)
            findings.writeUnwritten(to: log)
            try rules.prepare(options.configuration.rules)
            return change(to: options)
        } catch {
            // Nobody waits for what is found after that.
            if !wait.isOver { findings.writeUnwritten(to: log) }
            throw StateError.notReloaded(error.code, error.message)
        }
    }

    /// Reads the files anew, and refuses what the next start would refuse.
    private func readOptions(_ findings: ConfigurationFindings) throws(StateError) -> Options {
        guard case .serve(let options) = try Request(arguments: arguments, findings),
            options.path != nil
        else {
            throw StateError(
                .err,
                "no configuration file is in use, nothing to reload; see --config in stated --help"
            )
        }
        if options.configuration.rules.fileRules != fileRules {
            let directories = Set(options.configuration.rules.fileRules.compactMap(\.directory))
            try findings.waiting.during(directories.sorted().joined(separator: ", ")) {
                () throws(StateError) in try FileContainers(options, log: log)?.check()
            }
        }
        return options
    }

    private func change(to options: Options) -> ConfigurationSource.Change {
        let report = running.changes(to: options, locations)
        return { core, server in
            self.take(options, core, &server)
            return report
        }
    }

    // MARK: Preview

    /// On a thread of its own.
    private func preview(
        _ wait: ReloadWait,
        _ subject: Subject
    ) throws(StateError) -> ReloadPreview {
        let findings = ConfigurationFindings(wait)
        var preview = ReloadPreview()
        var sights = [visibility(running, of: subject)]
        do throws(StateError) {
            let options = try readOptions(findings)
            sights.append(visibility(options, of: subject))
            preview.report = running.changes(to: options, locations).shown(to: sights)
            check(options.configuration.rules.byKey, sights, &preview)
        } catch {
            preview.errors = findings.errors.map { [$0.message] + $0.details }
            if preview.errors.isEmpty { preview.errors = [[error.message]] }
        }
        preview.warnings = findings.warnings.map { [$0.message] + $0.details }
        if !sights.allSatisfy(\.showsEverything) {
            preview.errors = preview.errors.map { _ in [StateError.hiddenFault] }
            preview.warnings = preview.warnings.map { _ in [StateError.hiddenFault] }
        }
        return preview
    }

    /// What a subject may see by the rules of a configuration, for the thread of a preview.
    private func visibility(_ options: Options, of subject: Subject) -> Visibility {
        // The loop uses the table itself.
        Visibility(restricting: subject, KeyRules(copying: options.configuration.rules.byKey))
    }

    /// How long clients wait at once while stored values are checked.
    private static let turnNanoseconds: Int64 = 2_000_000
    /// The most refused values that are listed.
    private static let refusedLimit = 100

    /// Checks the stored values under other rules, which nobody else uses.
    private func check(
        _ byKey: KeyRules,
        _ sights: [Visibility],
        _ preview: inout ReloadPreview
    ) {
        var next: [UInt8]?
        repeat {
            let start = clinux_monotonic_nanoseconds()
            next = rules.keyspace.withCore { core in
                func page(_ bound: Bytes?) -> [UInt8]? {
                    var end: [UInt8]?
                    core.forEachDurable(PatternSet([.everything]), after: bound) { record in
                        if sights.allSatisfy({ $0.mayReveal(.read, about: record) }) {
                            Reload.check(record, byKey, &preview)
                        }
                        guard clinux_monotonic_nanoseconds() - start > Reload.turnNanoseconds
                        else { return true }
                        end = Array(record.key)
                        return false
                    }
                    return end
                }
                return next.map { key in key.withUnsafeBytes { page($0) } } ?? page(nil)
            }
            // Others take the lock meanwhile.
            if next != nil { usleep(1_000) }
        } while next != nil
    }

    private static func check(
        _ record: Record,
        _ byKey: KeyRules,
        _ preview: inout ReloadPreview
    ) {
        preview.checkedCount += 1
        guard let value = record.value, let rule = byKey.rule(for: record.key) else { return }
        do throws(StateError) { try rule.values.checkValue(record.key, value) } catch {
            preview.refusedCount += 1
            guard preview.refused.count < refusedLimit else { return }
            preview.refused.append((Array(record.key), record.revision, error.message))
        }
    }

    // MARK: Change

    /// In the loop, under the keyspace's lock.
    private func take(
        _ options: Options,
        _ core: KeyspaceCore,
        _ server: inout ServerOptions
    ) {
        let configuration = options.configuration
        core.replace(rules: configuration.rules.byKey)
        core.admission.limits = configuration.limits.keyspace
        core.files?.reload(limits: configuration.limits.keyspace)
        rules.limitDeferral(to: configuration.limits)
        chosen.keep(configuration.history, configuration.limits[.reserveBytes])
        options.apply(to: &server, log)
        let retired = RetiredOptions(running)
        running = options.keepingPlaces(of: running)
        retired.release()
    }

    private func end(_ result: Result<ReloadReport, StateError>) {
        switch result {
        case .success(let report):
            log.write(.notice, .reloaded, "reloaded: \(report.summary)")
            notifier?.send("READY=1", "STATUS=Serving; the configuration was reloaded")
        case .failure(let error):
            log.write(.error, .reloadFailed, error.message)
            notifier?.send("READY=1", "STATUS=Serving; \(error.message)")
        }
    }
}

extension ReloadReport {
    /// The most changes in a line of the log.
    private static let shownChangeCount = 10

    /// The report in one line.
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
        if changed.isEmpty {
            parts.append("nothing \(needsRestart.isEmpty ? "" : "else ")has changed")
        }
        return parts.joined(separator: "; ") + "; from revision \(revision) on"
    }
}

extension ReloadReport.Change {
    fileprivate var summary: String {
        let (old, new) = isLogged ? (old, new) : (withoutValues.old, withoutValues.new)
        let place = rule == 0 ? "" : "rule \(rule) (\(String(decoding: keys, as: UTF8.self))) "
        return "\(place)\(option): \(old ?? "none") → \(new ?? "none")"
    }
}

/// Frees options that are no longer in use; freeing 5,000 rules took the loop 70 ms.
///
/// `@unchecked Sendable`: the loop thread uses it up to ``release()``, then only the thread that
/// this starts.
private final class RetiredOptions: @unchecked Sendable {
    private var options: Options?

    init(_ options: Options?) { self.options = options }

    /// Frees them on another thread.
    func release() {
        let thread = WorkerThread(name: "release")
        thread.start { self.options = nil }
        thread.detach()
    }
}
