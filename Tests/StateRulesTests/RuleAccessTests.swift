import StateContainers
import StateEngine
import StateJSON
import StateRules
import Testing

/// Whom the lists of a rule mean.
struct RuleAccessTests {
    private static let ann = Subject(
        uid: 1_000,
        groups: [1_000, 29],
        unit: "app@1.service",
        isPrivileged: false
    )
    private static let bob = Subject(uid: 1_001, groups: [1_001], isPrivileged: false)

    private func table(_ options: String) throws -> RuleTable {
        let accounts = AccountDirectory(
            user: { ["root": 0, "ann": 1_000, "bob": 1_001][$0] },
            group: { ["audio": 29][$0] }
        )
        let text = Array("{\"rules\": [{\"keys\": \"k\", \(options)}]}".utf8)
        return try Configuration(JSONValue(parsing: text), accounts: accounts).rules
    }

    private func allows(
        _ options: String,
        _ action: KeyAction,
        _ subject: Subject,
        _ target: AccessTarget
    ) throws -> Bool {
        let table = try table(options)
        let rule = try #require(Array("k".utf8).withUnsafeBytes { table.byKey.rule(for: $0) })
        return rule.access.allows(action, subject, target)
    }

    @Test(arguments: [
        (#""read": ["ann"]"#, KeyAction.read, true, false),
        (#""read": ["1001"]"#, .read, false, true),
        (#""read": ["group:audio"]"#, .read, true, false),
        (#""read": ["root", "*"]"#, .read, true, true),
        (#""read": ["unit:app@1.service"]"#, .read, true, false),
        (#""read": ["bob", "unit:app@2.service"]"#, .read, false, true),
        (#""read": []"#, .read, false, false),
        (#""read": ["ann"]"#, .watch, true, false),
        (#""watch": ["ann"]"#, .read, true, true),
        (#""watch": ["bob"], "read": ["ann", "bob"]"#, .watch, false, true),
        (#""read": ["ann"]"#, .write, true, true),
        (#""write": ["ann"]"#, .create, true, false),
        (#""create": ["bob"]"#, .write, true, true),
        (#""create": ["bob"]"#, .create, false, true),
        (#""create": ["bob"], "write": ["ann"]"#, .create, false, false),
        (#""readonly": false"#, .admin, false, false),
        (#""admin": ["bob"]"#, .admin, false, true),
        (#""admin": ["*"]"#, .admin, true, true),
    ])
    func `a list means users, groups, units and everybody`(
        options: String,
        action: KeyAction,
        ann: Bool,
        bob: Bool
    ) throws {
        #expect(try allows(options, action, Self.ann, .entry(owner: 7)) == ann)
        #expect(try allows(options, action, Self.bob, .entry(owner: 7)) == bob)
    }

    @Test(arguments: [
        (#""read": ["owner"]"#, KeyAction.read, true, false, true),
        (#""read": ["owner"], "write": ["bob"]"#, .read, true, false, false),
        (#""read": ["owner"], "create": ["bob"]"#, .read, true, false, false),
        (#""write": ["owner"]"#, .write, true, false, false),
        (#""write": ["owner"]"#, .create, false, false, false),
        (#""write": ["owner"], "create": ["*"]"#, .create, true, true, true),
        (#""write": ["owner"], "create": ["*"]"#, .write, true, false, true),
        (#""write": ["owner", "ann"]"#, .create, true, true, true),
    ])
    func `an owner is who created the entry, and of an absent key who may create it`(
        options: String,
        action: KeyAction,
        own: Bool,
        others: Bool,
        absent: Bool
    ) throws {
        #expect(try allows(options, action, Self.ann, .entry(owner: 1_000)) == own)
        #expect(try allows(options, action, Self.ann, .entry(owner: 1_001)) == others)
        #expect(try allows(options, action, Self.ann, .absent) == absent)
    }

    @Test func `rules of access are the same where they say the same`() throws {
        let text = try table(#""read": ["ann", "group:audio"]"#).byKey.access.text
        #expect(
            try table(#""read": ["group:29", "1000"], "readonly": true"#).byKey.access.text == text
        )
        #expect(try table(#""read": ["ann"]"#).byKey.access.text != text)
        #expect(try table(#""watch": ["ann", "group:audio"]"#).byKey.access.text != text)
        #expect(try table(#""readonly": true"#).byKey.access.text.isEmpty)
    }

    @Test(arguments: [
        ("/", true), ("*", true), ("**", true), ("?*", true), ("*?", true), ("??*", false),
        ("a*", false), ("*a", false), ("?", false), ("a/", false), ("[a]*", false),
    ])
    func `a pattern that means every key is told from others`(text: String, isAll: Bool) throws {
        #expect(try Pattern(text).meansEverything == isAll)
    }
}
