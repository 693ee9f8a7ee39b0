import StateEngine

/// A command that the model can carry out as the daemon does.
indirect enum ModelCommand {
    enum Presence: String {
        case absent = "NX"
        case present = "XX"
    }

    enum SetCondition {
        case presence(Presence)
        case revision(Int64)
        case value(String)
    }

    enum ApplyStep {
        case set(String, String, ifRevision: Int64?)
        case delete(String, ifRevision: Int64?)
        case check(String, Int64)
    }

    enum ListForm: String {
        case keys = "KEYS"
        case count = "COUNT"
        case entries = ""
    }

    case get(String)
    case multiGet([String])
    case exists([String])
    case length(String)
    case keys(glob: String)
    case set(String, String, Presence?, returnsOld: Bool)
    case multiSet([(key: String, value: String)], onlyIfAllAbsent: Bool)
    case delete([String])
    case getDelete(String)
    case append(String, String)
    case add(String, Int64)
    case stateGet(String)
    case stateSet(String, String, [SetCondition])
    case stateApply([ApplyStep])
    case stateDelete([String], isDryRun: Bool)
    case stateList(String, after: String?, limit: Int?, ListForm)
    /// MULTI, the commands, EXEC.
    case transaction([ModelCommand])

    /// What is sent for it: one command, or for a transaction as many as it needs.
    var requests: [[[UInt8]]] {
        guard case .transaction(let commands) = self else {
            return [words.map { Array($0.utf8) }]
        }
        return [[Array("MULTI".utf8)]] + commands.flatMap(\.requests) + [[Array("EXEC".utf8)]]
    }

    /// The command as it stands on the wire; for a transaction its EXEC.
    var words: [String] {
        switch self {
        case .get(let key): ["GET", key]
        case .multiGet(let keys): ["MGET"] + keys
        case .exists(let keys): ["EXISTS"] + keys
        case .length(let key): ["STRLEN", key]
        case .keys(let glob): ["KEYS", glob]
        case .set(let key, let value, let presence, let returnsOld):
            ["SET", key, value] + (presence.map { [$0.rawValue] } ?? [])
                + (returnsOld ? ["GET"] : [])
        case .multiSet(let pairs, let onlyIfAllAbsent):
            [onlyIfAllAbsent ? "MSETNX" : "MSET"] + pairs.flatMap { [$0.key, $0.value] }
        case .delete(let keys): ["DEL"] + keys
        case .getDelete(let key): ["GETDEL", key]
        case .append(let key, let suffix): ["APPEND", key, suffix]
        case .add(let key, let number): ["INCRBY", key, String(number)]
        case .stateGet(let key): ["STATE.GET", key]
        case .stateSet(let key, let value, let conditions):
            ["STATE.SET", key, value] + conditions.flatMap(\.words)
        case .stateApply(let steps):
            ["STATE.APPLY", String(steps.count)] + steps.flatMap(\.words)
        case .stateDelete(let patterns, let isDryRun):
            ["STATE.DELETE"] + patterns + (isDryRun ? ["DRYRUN"] : [])
        case .stateList(let pattern, let after, let limit, let form):
            ["STATE.LIST", pattern] + (after.map { ["AFTER", $0] } ?? [])
                + (limit.map { ["LIMIT", String($0)] } ?? [])
                + (form == .entries ? [] : [form.rawValue])
        case .transaction: ["EXEC"]
        }
    }
}

extension ModelCommand.SetCondition {
    fileprivate var words: [String] {
        switch self {
        case .presence(let presence): [presence.rawValue]
        case .revision(let revision): ["IFREV", String(revision)]
        case .value(let value): ["IFVAL", value]
        }
    }
}

extension ModelCommand.ApplyStep {
    fileprivate var words: [String] {
        func condition(_ revision: Int64?) -> [String] {
            revision.map { ["IFREV", String($0)] } ?? []
        }
        switch self {
        case .set(let key, let value, let revision):
            return ["SET", key, value] + condition(revision)
        case .delete(let key, let revision): return ["DELETE", key] + condition(revision)
        case .check(let key, let revision): return ["CHECK", key, String(revision)]
        }
    }
}

extension ModelCommand: CustomStringConvertible {
    var description: String { requests.map(\.line).joined(separator: "; ") }
}
