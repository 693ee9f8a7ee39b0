import CLinux
import Glibc
import StateEngine
import StateWire

/// A file that a file rule does not accept, and why.
package struct RefusedFile: Sendable {
    package var path: String
    package var issue: String

    package init(path: String, issue: String) { (self.path, self.issue) = (path, issue) }
}

/// The source of the configuration, and the refused files; the program sets both before it serves.
///
/// Used only by the loop thread.
final class Configuration {
    /// Reloads the configuration; nil if there is no configuration file.
    var reloader: Reloader?
    /// The refused files.
    var refusedFiles: () -> [RefusedFile] = { [] }

    /// Reloads the configuration for a connection, which waits for the result, or says what a
    /// reload would do.
    func reload(for connection: Connection, isDryRun: Bool) throws(StateError) {
        guard let reloader else { throw Configuration.missing }
        reloader.add(connection, isPreview: isDryRun)
        connection.inbound.awaitsLateReply = true
    }

    static let missing = StateError(
        .err,
        "no configuration file is in use, nothing to reload; see --config in stated --help"
    )
}

/// STATE.EXPLAIN, STATE.RULES, STATE.DEFAULTS and STATE.CHECK.
struct RuleCommands {
    let configuration: Configuration
    let settings: Settings

    func reload(isDryRun: Bool, _ context: borrowing CommandContext) throws(StateError) {
        try context.requireAdmin("STATE.RELOAD")
        try configuration.reload(for: context.connection, isDryRun: isDryRun)
    }

    func list(_ context: borrowing CommandContext) {
        let visibility = context.core.visibility(of: context.connection.subject)
        let rules = (context.core.rules?.descriptions ?? []).compactMap { visibility.shown($0) }
        context.output.writeArray(rules.count)
        for rule in rules {
            context.output.writeArray(4)
            context.output.writeInteger(Int64(rule.number))
            context.output.writeBulk(rule.keys)
            let members = rule.options.map { "\"\($0.name)\":\($0.value)" }
            context.output.writeBulk("{\(members.joined(separator: ","))}")
            context.output.writeBulk(rule.place.source)
        }
    }

    func explain(_ key: Bytes, _ context: borrowing CommandContext) throws(StateError) {
        if let subject = context.restriction {
            try context.core.require(.read, ofSeen: key, for: subject)
        }
        var options = context.core.explanation(of: key)
        if let standard = context.core.rules?.standards[key], !standard.isRuled {
            options.removeAll { $0.name == "default" }
            let value = (standard.json, standard.origin)
            options.append(RuleOption(name: "default", value: value.0, source: value.1))
        }
        for (name, value) in defaults(besides: options, context)
        where !options.contains(where: { $0.name == name }) {
            options.append(RuleOption(name: name, value: value))
        }
        context.output.writeArray(options.count)
        for option in options {
            context.output.writeArray(5)
            context.output.writeBulk(option.name)
            context.output.writeBulk(option.value)
            context.output.writeInteger(option.rule.map { Int64($0.index) + 1 } ?? 0)
            context.output.writeBulk(option.keys)
            context.output.writeBulk(option.source)
        }
    }

    /// STATE.DEFAULTS: the keys with a default, whether or not they are set.
    func listDefaults(
        _ pattern: Bytes?,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let pattern =
            try pattern.map { bytes throws(StateError) in try Pattern(bytes) } ?? .everything
        var values = context.core.rules?.standards.matching(pattern) ?? []
        if let subject = context.restriction {
            values.removeAll { key, _ in
                key.withUnsafeBytes { key in
                    (try? context.core.require(.read, ofSeen: key, for: subject)) == nil
                }
            }
        }
        let start = context.output.count
        context.output.writeArray(values.count)
        for (key, standard) in values {
            context.output.writeArray(3)
            context.output.writeBulk(key)
            context.output.writeBulk(standard.value)
            context.output.writeBulk(standard.origin)
            try settings.options.checkReply(context.output.count - start)
        }
    }

    /// The options of keys that no rule sets.
    private func defaults(
        besides options: [RuleOption],
        _ context: borrowing CommandContext
    ) -> [(name: String, value: String)] {
        let hasSchema = options.contains { $0.name == "schema" }
        let limit = context.core.admission.limits.valueByteCount
        let byteCount = hasSchema ? min(ValueRule.schemaByteCount, limit) : limit
        var defaults = [
            ("backing", context.core.isPersistent ? "\"sqlite\"" : "\"memory\""),
            ("durability", context.core.isPersistent ? "\"synced\"" : "\"memory\""),
            ("readonly", "false"), ("writeOnce", "false"),
            ("limits.valueBytes", String(byteCount)),
        ]
        if hasSchema { defaults.append(("limits.depth", String(ValueRule.schemaDepth))) }
        for action in KeyAction.allCases {
            let everybody = action == .admin ? RuleCommands.administrators : "[\"*\"]"
            defaults.append((action.rawValue, everybody))
        }
        return defaults
    }

    /// Root, and the daemon's user.
    private static var administrators: String {
        geteuid() == 0 ? "[\"root\"]" : "[\"root\",\"\(geteuid())\"]"
    }

    // MARK: STATE.CHECK

    func check(
        _ pattern: Bytes?,
        _ after: Bytes?,
        _ limit: Int,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        // The reply contains the last checked key, which may be hidden from the user.
        if context.restriction != nil { try context.requireAdmin("STATE.CHECK") }
        let core = context.core
        let patterns = PatternSet([
            try pattern.map { bytes throws(StateError) in try Pattern(bytes) } ?? .everything
        ])
        var page = CheckPage(limit: limit, subject: context.restriction)
        let bound = core.forEachDurable(
            patterns,
            after: after,
            comparing: CheckPage.comparedByteCount
        ) { page.take($0, core) }
        let next = page.end ?? bound
        context.output.writeMap(4, context.version)
        context.output.writeField("checked", Int64(page.checkedCount))
        context.output.writeBulk("next")
        if let next {
            context.output.writeBulk(next)
        } else {
            context.output.writeNull(context.version)
        }
        context.output.writeBulk("refused")
        context.output.writeArray(page.refusedCount)
        context.output.append(page.rows.bytes)
        context.output.writeBulk("files")
        let includesFiles = next == nil && context.connection.subject.isPrivileged
        let files = includesFiles ? configuration.refusedFiles() : []
        context.output.writeArray(files.count)
        for file in files {
            context.output.writeArray(2)
            context.output.writeBulk(file.path)
            context.output.writeBulk(file.issue)
        }
    }
}

/// The part of the values that is checked without making other clients wait.
private struct CheckPage: ~Copyable {
    /// How long a page takes, apart from its last value.
    private static let nanoseconds: Int64 = 2_000_000
    /// The most bytes of rows in a page.
    private static let rowByteCount = 1 << 20
    /// The bytes of keys that are compared with the pattern: a few milliseconds if nothing matches.
    static let comparedByteCount = 128 << 10

    private(set) var rows = ByteBuffer()
    private(set) var refusedCount = 0
    private(set) var checkedCount = 0
    /// The key after which the next page begins; nil if this was the last page.
    private(set) var end: [UInt8]?
    private let limit: Int
    /// The requesting subject, if keys may be hidden from it.
    private let subject: Subject?
    private let deadline = clinux_monotonic_nanoseconds() + CheckPage.nanoseconds

    init(limit: Int, subject: Subject?) { (self.limit, self.subject) = (limit, subject) }

    /// Checks an entry.
    ///
    /// Returns false if the page is full.
    mutating func take(_ record: Record, _ core: KeyspaceCore) -> Bool {
        checkedCount += 1
        if core.visibility(of: subject).mayReveal(.read, about: record), let value = record.value,
            let fault = CheckPage.fault(record.key, value, core)
        {
            refusedCount += 1
            rows.writeArray(3)
            rows.writeBulk(record.key)
            rows.writeInteger(record.revision)
            rows.writeBulk(fault.message)
        }
        guard
            refusedCount >= limit || rows.count >= CheckPage.rowByteCount
                || clinux_monotonic_nanoseconds() >= deadline
        else { return true }
        end = Array(record.key)
        return false
    }

    private static func fault(_ key: Bytes, _ value: Bytes, _ core: KeyspaceCore) -> StateError? {
        guard let rule = core.rules?.rule(for: key) else { return nil }
        do throws(StateError) { try rule.values.checkValue(key, value) } catch { return error }
        return nil
    }
}
