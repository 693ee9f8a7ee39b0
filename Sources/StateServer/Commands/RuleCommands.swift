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
    let listings: Listings

    func reload(isDryRun: Bool, _ context: borrowing CommandContext) throws(StateError) {
        try context.requireAdmin("STATE.RELOAD")
        try configuration.reload(for: context.connection, isDryRun: isDryRun)
    }

    func list(_ context: inout CommandContext) {
        context.execution?.visitsLeft -= context.core.rules?.descriptions.count ?? 0
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
        _ context: inout CommandContext
    ) throws(StateError) {
        let pattern =
            try pattern.map { bytes throws(StateError) in try Pattern(bytes) } ?? .everything
        var values = context.core.rules?.standards.matching(pattern) ?? []
        context.execution?.visitsLeft -= values.count
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
        _ context: inout CommandContext
    ) throws(StateError) {
        if context.restriction != nil { try context.requireAdmin("STATE.CHECK") }
        let patterns = PatternSet([
            try pattern.map { bytes throws(StateError) in try Pattern(bytes) } ?? .everything
        ])
        try context.requireSight(.read, of: patterns.patterns)
        let listing = CheckListing(
            patterns,
            after: after.map { Array($0) },
            limit: limit,
            visitLimit: context.execution?.visitsLeft ?? .max,
            for: context.restriction
        )
        try listings.list(listing, &context) { [configuration] page, context in
            RuleCommands.write(page, configuration, context)
        }
        context.execution?.visitsLeft -= listing.visitedCount
    }

    private static func write(
        _ page: CheckListing,
        _ configuration: Configuration,
        _ context: borrowing CommandContext
    ) {
        context.output.writeMap(4, context.version)
        context.output.writeField("checked", Int64(page.checkedCount))
        context.output.writeBulk("next")
        if let next = page.end {
            context.output.writeBulk(next)
        } else {
            context.output.writeNull(context.version)
        }
        context.output.writeBulk("refused")
        context.output.writeArray(page.refusedCount)
        context.output.append(page.rows.bytes)
        context.output.writeBulk("files")
        let includesFiles = page.end == nil && context.connection.subject.isPrivileged
        let files = includesFiles ? configuration.refusedFiles() : []
        context.output.writeArray(files.count)
        for file in files {
            context.output.writeArray(2)
            context.output.writeBulk(file.path)
            context.output.writeBulk(file.issue)
        }
    }
}

/// A page of the values that STATE.CHECK compares with the rules.
///
/// It ends at a key that its reader may read, behind a number of such keys: how many are hidden
/// between them only takes time, which is that of slices.
private final class CheckListing: SlicedListing {
    /// The most bytes of rows in a page, apart from its last row.
    private static let rowByteCount = 1 << 20
    /// The most values in a page.
    private static let checkedLimit = 10_000

    private(set) var rows = ByteBuffer()
    private(set) var refusedCount = 0
    private(set) var checkedCount = 0
    /// Keys that were looked at.
    private(set) var visitedCount = 0
    /// The key after which the next page begins; nil if this is the last page.
    private(set) var end: [UInt8]?
    /// Keys up to this one were looked at.
    private var passed: [UInt8]?
    private let patterns: PatternSet
    private let limit: Int
    private let visitLimit: Int
    /// The requesting subject, if keys may be hidden from it.
    private let subject: Subject?

    init(
        _ patterns: PatternSet,
        after: [UInt8]?,
        limit: Int,
        visitLimit: Int,
        for subject: Subject?
    ) {
        (self.patterns, passed, self.subject) = (patterns, after, subject)
        (self.limit, self.visitLimit) = (limit, visitLimit)
    }

    var byteCount: Int { rows.footprint }

    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        repeat {
            let isWhole = lookAtPiece(core, until: deadline)
            guard visitedCount <= visitLimit else { throw visitsTooMuch(visitLimit) }
            if isWhole || end != nil { return true }
        } while clinux_monotonic_nanoseconds() < deadline
        return false
    }

    /// Returns whether all keys were looked at.
    private func lookAtPiece(_ core: KeyspaceCore, until deadline: Int64) -> Bool {
        let visibility = core.visibility(of: subject)
        var last: [UInt8]?
        func walk(_ bound: Bytes?) -> [UInt8]? {
            core.forEachDurable(
                patterns,
                after: bound,
                comparing: ListingPiece.comparedByteCount
            ) { record in
                visitedCount += 1
                if visibility.mayReveal(.read, about: record) { take(record, core) }
                // A schema may take long for one value.
                guard end != nil || clinux_monotonic_nanoseconds() >= deadline else { return true }
                last = Array(record.key)
                return false
            }
        }
        let compared = passed.map { key in key.withUnsafeBytes { walk($0) } } ?? walk(nil)
        if compared != nil {
            visitedCount += ListingPiece.comparedByteCount / ListingPiece.byteCountOfComparison
        }
        guard let reached = last ?? compared else { return true }
        passed = reached
        return false
    }

    private func take(_ record: Record, _ core: KeyspaceCore) {
        checkedCount += 1
        if let value = record.value, let fault = fault(record.key, value, core) {
            refusedCount += 1
            rows.writeArray(3)
            rows.writeBulk(record.key)
            rows.writeInteger(record.revision)
            rows.writeBulk(fault.message)
        }
        if refusedCount >= limit || rows.count >= CheckListing.rowByteCount
            || checkedCount >= CheckListing.checkedLimit
        {
            end = Array(record.key)
        }
    }

    private func fault(_ key: Bytes, _ value: Bytes, _ core: KeyspaceCore) -> StateError? {
        guard let rule = core.rules?.rule(for: key) else { return nil }
        do throws(StateError) { try rule.values.checkValue(key, value) } catch { return error }
        return nil
    }

    func end(in core: KeyspaceCore) {}
}
