/// What a keyspace asks of the configuration.
///
/// Every call comes under the keyspace's lock.
package protocol KeyRules: AnyObject, Sendable {
    /// What holds for a key; nil where no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that begin as it does.
    func rule(for key: Bytes) -> KeyRule?

    /// Whether some rule says who may do what.
    var limitsAccess: Bool { get }

    /// What the rule whose keys are `/` says, and it alone; nil where there is none.
    var ruleOfAll: KeyRule? { get }

    /// Whether some rule makes `subject` an administrator.
    func namesAdministrator(_ subject: Subject) -> Bool

    /// The same rules for another thread.
    func copy() -> any KeyRules

    /// What the rules say of access, the same for the same: whoever remembers it sees that it has changed.
    var accessText: String { get }
}

/// What a value may be, as a rule says it.
package protocol ValueSchema: Sendable {
    /// What is wrong with a value; nothing where it may be.
    ///
    /// - Parameter depthLimit: As deep may arrays and objects be nested.
    func issues(of value: Bytes, depthLimit: Int) -> [ValidationIssue]
}

/// Where the values of a rule live.
package enum KeyBacking: Hashable, Sendable {
    case sqlite
    case memory
    /// One file each, below a directory; `isShared` where others may write to it.
    case file(directory: String, isShared: Bool)

    /// The word for it in a configuration.
    package var name: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .file: "file"
        }
    }
}

/// What of a rule's keys is limited.
package enum KeyLimit: String, CaseIterable, Sendable {
    /// The largest value, in bytes.
    case valueBytes
    /// As deep may arrays and objects be nested in a value under a schema.
    case depth
    /// Keys, all those of the rule together.
    case keys
    /// Bytes of keys and values, all those of the rule together.
    case bytes
    /// Writes in a second, of one uid.
    case writesPerSecond
    /// Watches of one uid.
    case watches
    /// Connections of one uid.
    case connections
}
