import CLinux
import Glibc
import StateEngine
import StateWire

/// A file that a container of files does not take, and why.
package struct RefusedFile: Sendable {
    package var path: String
    package var issue: String

    package init(path: String, issue: String) { (self.path, self.issue) = (path, issue) }
}

/// What the rules say, and what they refuse.
extension Dispatcher {
    func stateReload(_ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        try requireAdmin(connection, "reload", core)
        try reload(connection)
    }

    func stateRules(_ connection: Connection, _ core: KeyspaceCore) {
        let visibility = core.visibility(of: connection.subject)
        let rules = (core.rules?.descriptions ?? []).compactMap { rule in
            visibility.map { $0.shown(rule) } ?? rule
        }
        connection.output.writeArray(rules.count)
        for rule in rules {
            connection.output.writeArray(3)
            connection.output.writeInteger(Int64(rule.number))
            connection.output.writeBulk(rule.keys)
            let members = rule.options.map { "\"\($0.name)\":\($0.value)" }
            connection.output.writeBulk("{\(members.joined(separator: ","))}")
        }
    }

    func stateExplain(
        _ key: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        if let subject = restriction(connection, core) {
            try core.require(.read, ofSeen: key, for: subject)
        }
        var options = core.rules?.explanation(of: key) ?? []
        for (name, value) in defaults(besides: options, core)
        where !options.contains(where: { $0.name == name }) {
            options.append(RuleOption(name: name, value: value, rule: 0, keys: []))
        }
        connection.output.writeArray(options.count)
        for option in options {
            connection.output.writeArray(4)
            connection.output.writeBulk(option.name)
            connection.output.writeBulk(option.value)
            connection.output.writeInteger(Int64(option.rule))
            connection.output.writeBulk(option.keys)
        }
    }

    /// What holds where no rule says otherwise.
    private func defaults(
        besides options: [RuleOption],
        _ core: KeyspaceCore
    ) -> [(name: String, value: String)] {
        let hasSchema = options.contains { $0.name == "schema" }
        let byteCount = hasSchema ? KeyRule.schemaByteCount : core.limits.valueByteCount
        var defaults = [
            ("backing", core.isPersistent ? "\"sqlite\"" : "\"memory\""),
            ("durability", core.isPersistent ? "\"synced\"" : "\"memory\""),
            ("readonly", "false"), ("writeOnce", "false"),
            ("limits.valueBytes", String(min(byteCount, core.limits.valueByteCount))),
        ]
        if hasSchema { defaults.append(("limits.depth", String(KeyRule.schemaDepth))) }
        for action in KeyAction.allCases {
            let everybody = action == .admin ? Dispatcher.administrators : "[\"*\"]"
            defaults.append((action.rawValue, everybody))
        }
        return defaults
    }

    /// Root, and the daemon's user.
    private static var administrators: String {
        geteuid() == 0 ? "[\"root\"]" : "[\"root\",\"\(geteuid())\"]"
    }

    // MARK: STATE.CHECK

    func stateCheck(
        _ pattern: Bytes?,
        _ after: Bytes?,
        _ limit: Int,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        // It says where it has come to, which may be a key that somebody may not know of.
        if restriction(connection, core) != nil {
            try requireAdmin(connection, "STATE.CHECK", core)
        }
        let patterns = PatternSet([
            try pattern.map { bytes throws(StateError) in try Pattern(bytes) } ?? .everything
        ])
        var page = CheckPage(limit: limit, subject: restriction(connection, core))
        let bound = core.forEachDurable(
            patterns,
            after: after,
            comparing: CheckPage.comparedByteCount
        ) { page.take($0, core) }
        let next = page.end ?? bound
        connection.output.writeMap(4, connection.version)
        connection.output.writeField("checked", Int64(page.checkedCount))
        connection.output.writeBulk("next")
        if let next {
            connection.output.writeBulk(next)
        } else {
            connection.output.writeNull(connection.version)
        }
        connection.output.writeBulk("refused")
        connection.output.writeArray(page.refusedCount)
        connection.output.append(page.rows.bytes)
        connection.output.writeBulk("files")
        let files = next == nil && connection.subject.isPrivileged ? refusedFiles() : []
        connection.output.writeArray(files.count)
        for file in files {
            connection.output.writeArray(2)
            connection.output.writeBulk(file.path)
            connection.output.writeBulk(file.issue)
        }
    }
}

/// As much of the values as is checked without keeping other clients waiting.
private struct CheckPage: ~Copyable {
    /// A page takes so long, but for the value at its end.
    private static let nanoseconds: Int64 = 2_000_000
    /// Rows of a page, in bytes.
    private static let rowByteCount = 1 << 20
    /// Bytes of keys that are compared with the pattern: a few milliseconds where nothing matches.
    static let comparedByteCount = 128 << 10

    private(set) var rows = ByteBuffer()
    private(set) var refusedCount = 0
    private(set) var checkedCount = 0
    /// The key behind which the next page begins; nil where this one came to its end.
    private(set) var end: [UInt8]?
    private let limit: Int
    /// Who asks, where there is something that he may not read.
    private let subject: Subject?
    private let deadline = clinux_monotonic_nanoseconds() + CheckPage.nanoseconds

    init(limit: Int, subject: Subject?) { (self.limit, self.subject) = (limit, subject) }

    /// Looks at an entry; false where the page is full.
    mutating func take(_ record: Record, _ core: KeyspaceCore) -> Bool {
        checkedCount += 1
        if core.mayRead(record, subject), let value = record.value,
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
        do throws(StateError) { try rule.checkValue(key, value) } catch { return error }
        return nil
    }
}
