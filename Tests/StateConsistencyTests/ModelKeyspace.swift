import Glibc
import StateEngine

/// What the daemon must hold, in a plain dictionary: one command after the other, nothing in flight.
struct ModelKeyspace {
    struct Entry: Hashable {
        var value: String
        var revision: Int64
        var created: Int64
        var version: Int64
        var owner: Int64
    }

    private(set) var entries: [String: Entry] = [:]
    /// The revision of the last commit.
    var revision: Int64 = 0
    /// The entries before the transaction that is open.
    private var entriesBefore: [String: Entry]?

    /// The keys in the order of their bytes.
    var sortedKeys: [String] {
        entries.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// What an open transaction's commit will have as its revision.
    var openRevision: Int64 { revision + 1 }

    /// The revision that a command which counts tells: its commit's, or the last where it changed nothing.
    var deliveredRevision: Int64 { hasOpenChanges ? openRevision : revision }

    private var hasOpenChanges: Bool {
        guard let entriesBefore else { return false }
        return entries.values.contains { $0.revision == openRevision }
            || entriesBefore.keys.contains { entries[$0] == nil }
    }

    /// Makes what `body` changes one commit, or part of the one that is open; nothing where it throws.
    mutating func commit<R>(
        _ body: (inout ModelKeyspace) throws(StateError) -> R
    ) throws(StateError) -> R {
        guard entriesBefore == nil else { return try body(&self) }
        let before = self
        entriesBefore = entries
        do throws(StateError) {
            let result = try body(&self)
            if hasOpenChanges { revision += 1 }
            entriesBefore = nil
            return result
        } catch {
            self = before
            throw error
        }
    }

    mutating func set(_ key: String, _ value: String) {
        let old = entries[key]
        entries[key] = Entry(
            value: value,
            revision: openRevision,
            created: old?.created ?? openRevision,
            version: (old?.version ?? 0) + 1,
            owner: old?.owner ?? Int64(geteuid())
        )
    }

    /// - Returns: Whether it was there.
    @discardableResult
    mutating func delete(_ key: String) -> Bool { entries.removeValue(forKey: key) != nil }

    /// Throws CONFLICT where the key is at another revision; 0 means absent.
    func check(_ key: String, _ expected: Int64?) throws(StateError) {
        guard let expected, expected != entries[key]?.revision ?? 0 else { return }
        throw conflict(key)
    }

    func check(_ key: String, _ condition: ModelCommand.SetCondition) throws(StateError) {
        let entry = entries[key]
        let holds =
            switch condition {
            case .presence(.absent): entry == nil
            case .presence(.present): entry != nil
            case .revision(let expected): (entry?.revision ?? 0) == expected
            case .value(let expected): entry?.value == expected
            }
        if !holds { throw conflict(key) }
    }

    private func conflict(_ key: String) -> StateError {
        let found = entries[key].map { "at revision \($0.revision)" } ?? "absent (revision 0)"
        return StateError(.conflict, "key '\(key)' is \(found)")
    }

    // MARK: Patterns

    /// The keys that one of the patterns means, in order.
    func keys(_ patterns: [String]) -> [String] {
        sortedKeys.filter { key in patterns.contains { Self.pattern($0, means: key) } }
    }

    /// The keys that match the whole of a glob as Redis takes it.
    func keys(redisGlob glob: String) -> [String] {
        sortedKeys.filter { Self.glob(Array(glob.utf8)[...], Array($0.utf8)[...]) }
    }

    private static func pattern(_ pattern: String, means key: String) -> Bool {
        if pattern == "/" { return true }
        if pattern.contains(where: { $0 == "*" || $0 == "?" }) {
            return glob(Array(pattern.utf8)[...], Array(key.utf8)[...])
        }
        return pattern.hasSuffix("/") ? key.hasPrefix(pattern) : key == pattern
    }

    /// `*` and `?` of bytes, in the words of their definition.
    private static func glob(_ glob: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
        guard let first = glob.first else { return text.isEmpty }
        if first == UInt8(ascii: "*") {
            return Self.glob(glob.dropFirst(), text)
                || !text.isEmpty && Self.glob(glob, text.dropFirst())
        }
        guard let byte = text.first, first == UInt8(ascii: "?") || first == byte else {
            return false
        }
        return Self.glob(glob.dropFirst(), text.dropFirst())
    }
}
