import StateServer
import StateTestSupport
import StateWire
import Synchronization
import Testing

/// Reads of patterns by a user whom rules restrict: `me` in rules, and `other` another one.
struct AuditedReadTests {
    /// What is logged of reads while a user of these rules sends commands.
    private func reads(_ rules: String, _ commands: [String]) throws -> [String] {
        let lines = Lines()
        let stage = try AccessStage(rules) { options in
            options.writeLog = { message in
                guard message.event == .auditRead else { return }
                lines.all.withLock { $0.append(message.text) }
            }
        }
        let peer = try stage.connect()
        for command in commands {
            let words = command.split(separator: " ").map { Array($0.utf8) }
            _ = try peer.ask(words)
        }
        return lines.all.withLock { all in
            all.map { "\($0.split(separator: ", ", maxSplits: 2)[2])" }
        }
    }

    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    private static let commands = [
        "STATE.LIST %", "STATE.LIST % LONG", "STATE.CHANGES SINCE 0 %", "STATE.WATCH %",
    ]

    private func isLogged(_ rules: String, _ pattern: String) throws -> Set<Bool> {
        let found = try AuditedReadTests.commands.map { command in
            let words = command.split(separator: "%", omittingEmptySubsequences: false)
            return try !reads(rules, [words.joined(separator: pattern)]).isEmpty
        }
        return Set(found)
    }

    @Test(arguments: [
        (#"{"keys": "a/", "audit": "reads", "read": ["other"]}"#, "a/"),
        (#"{"keys": "a/", "audit": "reads", "read": ["other"]}"#, "/"),
        (#"{"keys": "a/", "audit": "reads", "read": ["other"]}"#, "a/*x"),
        (#"{"keys": "a/", "audit": "reads", "read": []}"#, "*"),
        (#"{"keys": "a/*", "audit": "reads", "read": ["other"]}"#, "a/b/"),
        (#"{"keys": "/", "read": ["other"]}, {"keys": "a/", "audit": "reads"}"#, "a/"),
        (#"{"keys": "a/", "audit": "reads"}, {"keys": "*", "read": ["other"]}"#, "a/"),
        (
            #"{"keys": "a/", "audit": "reads", "read": ["other"]}, {"keys": "b/", "read": ["me"]}"#,
            "/"
        ),
        (
            #"{"keys": "a/", "audit": "reads", "read": ["me"]}, {"keys": "a/b/", "read": []}"#,
            "a/b/"
        ),
        (
            #"{"keys": "a/", "audit": "reads", "read": []}, {"keys": "a/*/x", "read": ["me"]}"#,
            "/"
        ),
    ])
    func `a pattern of whose audited keys the user may read none is not logged`(
        rules: String,
        pattern: String
    ) throws {
        #expect(try isLogged(rules, pattern) == [false])
    }

    @Test(arguments: [
        (#"{"keys": "a/", "audit": "reads"}"#, "/"),
        (#"{"keys": "a/", "audit": "reads", "read": ["me"]}"#, "/"),
        (#"{"keys": "a/", "audit": "reads", "read": ["group:mine"]}"#, "a/*"),
        (#"{"keys": "a/", "audit": "reads", "read": ["owner"]}"#, "a/"),
        (
            #"{"keys": "a/", "audit": "reads", "read": ["other"]}, {"keys": "a/b/", "read": ["me"]}"#,
            "/"
        ),
        (
            #"{"keys": "a/", "audit": "reads", "read": ["other"]}, {"keys": "a/k", "read": ["*"]}"#,
            "a/"
        ),
        (
            #"{"keys": "a/", "audit": "reads"}, {"keys": "a/b/", "read": ["other"]}"#,
            "a/*"
        ),
        (
            #"{"keys": "/", "read": ["other"]}, {"keys": "a/", "audit": "reads", "read": ["me"]}"#,
            "/"
        ),
        (
            #"{"keys": "a/", "audit": "reads", "read": []}, {"keys": "b/", "audit": "reads"}"#,
            "/"
        ),
    ])
    func `one of which the user may read some key is`(rules: String, pattern: String) throws {
        #expect(try isLogged(rules, pattern) == [true])
    }

    @Test(arguments: [(40, false), (200, true)])
    func `anybody may ask, so not all of very many rules are looked at`(
        count: Int,
        isLogged: Bool
    ) throws {
        // For each of them all before it are looked at: 820 lists, or 20,100 of at most 10,000.
        let rules = (0..<count).map {
            #"{"keys": "a/*/\#($0)", "audit": "reads", "read": ["other"]}"#
        }
        #expect(try reads(rules.joined(separator: ","), ["STATE.LIST a/"]).isEmpty == !isLogged)
    }

    @Test func `whoever may read but not watch has lists logged, and no watch`() throws {
        let rules = #"{"keys": "a/", "audit": "reads", "watch": ["other"]}"#
        let found = try reads(
            rules,
            [
                "STATE.WATCH a/", "STATE.CHANGES SINCE 0 a/", "STATE.WATCH a/k", "STATE.LIST a/",
            ]
        )
        #expect(found == ["STATE.LIST, rule 1: keys 'a/'"])
    }

    @Test(arguments: [(#"["me"]"#, true), (#"["other"]"#, false)])
    func `a backup has all values, so it is logged if it is allowed`(
        administrators: String,
        isLogged: Bool
    ) throws {
        let rules = """
            {"keys": "a/", "audit": "reads", "read": ["other"]},
            {"keys": "/", "admin": \(administrators)}
            """
        let found = try reads(rules, ["STATE.BACKUP BEGIN"])
        #expect(found == (isLogged ? ["STATE.BACKUP, rule 1: keys '/'"] : []))
    }
}
