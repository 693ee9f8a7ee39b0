import StateModel

/// What COMMAND DOCS and the documentation tell about a verb.
package struct VerbDocumentation: Sendable {
    /// The group, with the name that Redis gives it.
    package enum Group: String, Sendable {
        case generic, string, connection, server, pubsub, transactions, scripting
        /// Our own.
        case state

        /// The category of ACL CAT; nil if the group has none.
        package var category: String? {
            switch self {
            case .generic: "keyspace"
            case .transactions: "transaction"
            case .string, .connection, .pubsub, .scripting: rawValue
            case .server, .state: nil
            }
        }
    }

    package let verb: Verb.Name
    package let group: Group
    /// The version of Redis that introduced it; empty for our own.
    package let since: StaticString
    /// Its arguments, as the documentation of Redis writes them; see ``CommandSyntax``.
    package let syntax: StaticString
    /// In what it differs from Redis; empty if in nothing.
    package let difference: StaticString

    init(
        _ verb: Verb.Name,
        _ group: Group,
        since: StaticString = "",
        _ syntax: StaticString = "",
        differs difference: StaticString = ""
    ) {
        (self.verb, self.group, self.since) = (verb, group, since)
        (self.syntax, self.difference) = (syntax, difference)
    }

    /// How it compares with Redis, in one phrase; nil for our own.
    package var comparison: String? {
        guard group != .state else { return nil }
        return difference.utf8CodeUnitCount == 0 ? "same" : "differs: \(difference)"
    }

    /// Of every verb.
    package static let all = aboutValues + aboutKeys + aboutServer + aboutChannels + ofStated

    private static let byVerb = Dictionary(
        uniqueKeysWithValues: all.map { ($0.verb, $0) }
    )
}

extension Verb {
    /// What is documented about it.
    package var documentation: VerbDocumentation {
        guard let found = VerbDocumentation.find(name) else {
            preconditionFailure("\(name) has no documentation")
        }
        return found
    }

    /// Its categories, as in ACL CAT.
    package var categories: [String] {
        var found = [isWrite ? "write" : "read"]
        if let category = documentation.group.category { found.append(category) }
        if isForAdministrators { found += ["admin", "dangerous"] }
        return found
    }

    /// Whether only administrators may use it.
    package var isForAdministrators: Bool {
        switch name {
        case .flushall, .flushdb, .monitor, .slowlog, .latency, .stateReload, .stateCompact,
            .stateBackup, .stateMetrics:
            true
        default: false
        }
    }

    /// The places of the keys among the arguments; nil if the arguments do not say how many there
    /// are.
    package func keyPlaces(_ arguments: Arguments) -> [Int]? {
        switch name {
        case .msetex: return counted(arguments, at: 1, step: 2)
        case .eval, .evalRo, .evalsha, .evalshaRo: return counted(arguments, at: 2, step: 1)
        case .object, .memory: return arguments.count > 2 ? [2] : []
        default: break
        }
        guard keys.first > 0 else { return [] }
        let last = keys.last < 0 ? arguments.count + keys.last : keys.last
        guard last < arguments.count else { return nil }
        return Array(stride(from: keys.first, through: last, by: keys.step))
    }

    /// The places of keys after their number.
    private func counted(_ arguments: Arguments, at place: Int, step: Int) -> [Int]? {
        guard arguments.count > place, let count = arguments[place].decimal, count >= 0,
            count <= (arguments.count - place - 1) / step
        else { return nil }
        return (0..<Int(count)).map { place + 1 + $0 * step }
    }
}

extension VerbDocumentation {
    package static func find(_ verb: Verb.Name) -> VerbDocumentation? { byVerb[verb] }
}
