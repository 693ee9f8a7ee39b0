import Glibc
import StateContainers
import StateEngine
import StateJSON
import StateRules
import StateServer
import StateTestSupport
import StateWire

/// A served keyspace whose rules keep this process's own user out like any other: `me` in rules is this user, `other` another one.
final class AccessStage {
    let stored: StoredServer
    var server: ServedKeyspace { stored.server }
    static let other: UInt32 = 4_242

    init(_ rules: String, _ adjust: (inout ServerOptions) -> Void = { _ in }) throws {
        stored = try StoredServer {
            $0.privilegedUsers = []
            adjust(&$0)
        }
        try exchange(rules)
    }

    /// Rules in JSON, without the brackets.
    func exchange(_ rules: String) throws {
        try server.exchangeRules(AccessStage.table(rules).byKey)
    }

    static func table(_ rules: String) throws -> RuleTable {
        let accounts = AccountDirectory(
            user: { ["me": geteuid(), "other": AccessStage.other][$0] },
            group: { ["mine": getegid(), "theirs": 4_243][$0] }
        )
        let text = Array("{\"rules\": [\(rules)]}".utf8)
        return try Configuration(JSONValue(parsing: text), accounts: accounts).rules
    }

    func connect(_ version: Int = 3) throws -> Peer { try stored.connect(version) }

    /// What the daemon itself does for a user: sets keys, or deletes those without a value, in one commit.
    func change(_ changes: [(String, String?)], by uid: UInt32 = AccessStage.other) throws {
        let cause = Cause(uid: uid, gid: 1, pid: 1, command: "test")
        try server.keyspace.withCore { core in
            let interned = core.retainCause(cause)
            defer { core.release(interned) }
            var receipt = core.makeReceipt()
            core.begin(interned, at: 1_000)
            for (key, value) in changes {
                try Array(key.utf8).withBorrowed { (key) throws(StateError) in
                    guard let value else {
                        try core.delete(key, &receipt)
                        return
                    }
                    try Array(value.utf8).withBorrowed { (value) throws(StateError) in
                        try core.set(key, to: value)
                    }
                }
            }
            core.finish(&receipt)
        }
        let revision = server.keyspace.withCore { $0.revisions.newest }
        try server.waitUntil("revision \(revision)") {
            server.keyspace.withCore { $0.revisions.durable } >= revision
        }
    }

    func set(_ key: String, _ value: String, by uid: UInt32 = AccessStage.other) throws {
        try change([(key, value)], by: uid)
    }

    var revision: Int64 { server.keyspace.withCore { $0.revisions.durable } }
}
