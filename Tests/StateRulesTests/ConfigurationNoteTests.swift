import StateEngine
import StateJSON
import StateModel
import StateRules
import Testing

/// Everything that is wrong with a configuration, and what is probably not meant.
struct ConfigurationNoteTests {
    private let accounts = AccountDirectory(
        user: { ["root": 0, "ann": 1_000][$0] },
        group: { ["audio": 29][$0] }
    )

    private func parts(_ texts: [String]) -> [Configuration.Part] {
        texts.enumerated().map { index, text in
            let document = JSON5Document(Array(text.utf8))
            return Configuration.Part(
                name: index == 0 ? nil : "rules.d/\(index).json5",
                value: document.value,
                lines: document.lines(ofElementsOf: JSONPath().member("rules"))
            )
        }
    }

    private func read(_ texts: String...) throws -> Configuration {
        try Configuration(parts(texts), accounts: accounts)
    }

    private func faults(_ texts: String...) -> [String] {
        do throws(OptionFault) {
            _ = try Configuration(parts(texts), accounts: accounts)
            return []
        } catch { return error.all.map(\.description) }
    }

    private func resolved(_ configuration: Configuration, _ key: String) -> KeyRule.Settings {
        let rule = Array(key.utf8).withUnsafeBytes { configuration.rules.byKey.rule(for: $0) }
        return rule?.settings ?? KeyRule.Settings()
    }

    @Test func `all that is wrong is told at once`() {
        let found = faults(
            """
            { socket: { mode: 660, port: 1 }, data: 'x', limits: { clients: 0, valueBytes: '8MB' },
              rules: [
                { keys: 'a//', readonly: 'yes', expire: '0s' },
                { write: ['nobody', 5, true], schema: { type: 'text', minimum: 'x', maxLenght: 1 } },
                { keys: 'a', limits: { ttl: '0', keys: -1 } },
              ] }
            """
        )
        #expect(
            found.map { String($0.prefix { $0 != ":" }) } == [
                "socket.mode", "socket.port", "data", "limits.valueBytes", "limits.clients",
                "rules[1].keys", "rules[1].expire", "rules[1].readonly", "rules[2]",
                "rules[2].schema.type", "rules[2].schema.minimum", "rules[2].schema.maxLenght",
                "rules[2].write[1]", "rules[2].write[3]", "rules[3].limits.keys",
                "rules[3].limits.ttl",
            ]
        )
    }

    @Test func `the rules of several files are numbered on, and keep their lines`() throws {
        let configuration = try read(
            "{ rules: [\n{ keys: 'a/', readonly: true } ] }",
            "{ rules: [\n\n{ keys: 'b/', readonly: true },\n{ keys: 'c/', readonly: true } ] }",
            "{ rules: [ { keys: 'd/', readonly: true } ] }"
        )
        let places = ["a/x", "b/x", "c/x", "d/x"].map {
            resolved(configuration, $0).isReadOnly?.rule.description
        }
        #expect(
            places == [
                "rule 1, line 2", "rule 2, rules.d/1.json5:3", "rule 3, rules.d/1.json5:4",
                "rule 4, rules.d/2.json5:1",
            ]
        )
        let wrong = faults("{ rules: [ { keys: 'a' } ] }", "{ data: '/x', rules: [ { key: '' } ] }")
        #expect(wrong.contains("rules[2].key: unknown option; did you mean 'keys'?"))
        #expect(wrong.contains { $0.hasPrefix("data: unknown option") })
    }

    @Test func `one rule for several patterns counts their keys together`() throws {
        let configuration = try read(
            "{ rules: [ { keys: ['a/', 'b/*', 'c'], limits: { keys: 3 } }, { keys: 'a/x', readonly: true } ] }"
        )
        for key in ["a/k", "b/k", "c"] {
            #expect(resolved(configuration, key).limits[.keys]?.rule == 0)
        }
        #expect(resolved(configuration, "a/x").isReadOnly?.rule == 1)
        #expect(resolved(configuration, "d").limits.isEmpty)
        #expect(
            configuration.rules.byKey.descriptions.map {
                "\($0.number) \(String(decoding: $0.keys, as: UTF8.self))"
            }
                == ["1 a/", "1 b/*", "1 c", "2 a/x"]
        )
        #expect(faults("{ rules: [ { keys: [] } ] }").count == 1)
        #expect(
            faults("{ rules: [ { keys: ['a', 'a'] } ] }") == [
                "rules[1].keys[2]: this pattern is in the list already"
            ]
        )
        #expect(
            faults("{ rules: [ { keys: ['a/', 'b/'], backing: 'file', directory: '/x' } ] }")
                == [
                    "rules[1].backing: \"file\" needs a rule of its own for each prefix and each key"
                ]
        )
    }

    @Test(arguments: [
        ("a/*/x", "a/*/y", false), ("a/*", "a/*x", true), ("a*b", "a*c", false),
        ("a?c", "abc*", false), ("a?c", "a*", true), ("a[bc]d", "a[cd]d", true),
        ("a[bc]d", "a[de]d", false), ("a[^b]", "a[b]", false), ("a*", "a?", true),
        ("a*x*", "a*y*", true), ("a/*/c/*", "a/b/?/d", false), ("a*\\*", "a*b", false),
        ("a??", "a?", false), ("a*?", "a?", true), ("a[x", "a?", true),
    ])
    func `two globs tie only if a key can match both`(
        first: String,
        second: String,
        tie: Bool
    )
        throws
    {
        let (one, other) = (GlobShape(try Pattern(first)), GlobShape(try Pattern(second)))
        let isSameLiteral = try Pattern(first).literal == Pattern(second).literal
        #expect(one.meets(other) == other.meets(one))
        if isSameLiteral { #expect(one.meets(other) == tie) }
        let text =
            "{ rules: [ { keys: '\(first)', readonly: true }, { keys: '\(second)', readonly: true } ] }"
        let found = faults(text.replacing("\\", with: "\\\\"))
        #expect(found.isEmpty == !(tie && isSameLiteral), "\(found)")
    }

    @Test func `globs that meet are found beside texts that both match`() throws {
        var random = SystemRandomNumberGenerator()
        let letters = ["a", "b", "*", "?", "[ab]", "[^a]"]
        func text(_ letters: [String], _ count: Int) -> String {
            (0..<count).map { _ in letters.randomElement(using: &random) ?? "" }.joined()
        }
        for _ in 0..<2_000 {
            let pair = (0..<2).map { _ in text(letters, Int.random(in: 1...4, using: &random)) }
            let (one, other) = (try Pattern(pair[0]), try Pattern(pair[1]))
            var meets = false
            for count in 1...5 {
                for number in 0..<1 << (2 * count) {
                    let key = (0..<count).map { UInt8(0x61 + number >> (2 * $0) & 3) }
                    meets = meets || key.withUnsafeBytes { one.matches($0) && other.matches($0) }
                }
            }
            // Nothing here needs more than eight characters; five of four letters decide nearly all.
            if meets { #expect(GlobShape(one).meets(GlobShape(other)), "\(pair)") }
            if !GlobShape(one).meets(GlobShape(other)) { #expect(!meets, "\(pair)") }
        }
    }

    @Test func `a rule that no key can reach is warned of`() throws {
        func warnings(_ rules: String) throws -> [String] {
            try read("{ rules: [\(rules)] }").warnings.map(\.description)
        }
        let whole = try warnings(
            "{ keys: 'a/', readonly: true }, { keys: 'a/*/b', readonly: false }"
        )
        #expect(
            whole.count == 1
                && whole[0].hasPrefix("rules[2]: this rule never applies: rule 1, line 1 ")
        )
        let part = try warnings(
            "{ keys: 'a/', readonly: true }, { keys: 'a/*/b', readonly: false, writeOnce: true }"
        )
        #expect(
            part.count == 1 && part[0].hasPrefix("rules[2].readonly: this option never applies")
        )
        #expect(try warnings("{ keys: '/', history: 0 }, { keys: '*x', history: 0 }").count == 1)
        #expect(
            try warnings("{ keys: 'a/b/', readonly: true }, { keys: 'a/*', readonly: true }")
                .isEmpty
        )
        #expect(
            try warnings("{ keys: 'a/', readonly: true }, { keys: 'a/b', readonly: false }").isEmpty
        )
    }

    @Test func `who is absent is warned of where the file may be for another machine`() throws {
        var lenient = accounts
        lenient.isLenient = true
        let configuration = try Configuration(
            parts([
                "{ socket: { group: 'gone' }, rules: [ { keys: 'a', write: ['ann', 'bob', 'group:no', 1000] } ] }"
            ]),
            accounts: lenient
        )
        #expect(
            configuration.warnings.map { String($0.description.prefix { $0 != ":" }) }
                == ["socket.group", "rules[1].write[2]", "rules[1].write[3]"]
        )
        #expect(
            resolved(configuration, "a").access[.write]?.value
                == [.user(1_000, name: "ann"), .user(1_000, name: "1000")]
        )
    }

    @Test func `files are for their owner if a rule says who may read the keys`() throws {
        func form(_ options: String) throws -> FileForm {
            let configuration = try read(
                "{ rules: [ { keys: 'a/', backing: 'file', directory: '/x', \(options) } ] }"
            )
            return configuration.rules.form(of: configuration.rules.rules[0])
        }
        #expect(try form("read: ['root']").mode == 0o600)
        #expect(try form("read: ['*']").mode == nil)
        #expect(
            try form("read: ['root', 'group:audio'], mode: '0640', group: 'audio'").mode == 0o640
        )
        let full = try form(
            "mode: '0644', owner: 'ann', group: 29, trim: true".replacing("29", with: "'29'")
        )
        #expect(full.mode == 0o644 && full.uid == 1_000 && full.gid == 29 && full.trims)
        for options in ["mode: '0644'", "mode: '0640'", "mode: '0640', group: '5'"] {
            let found = faults(
                "{ rules: [ { keys: 'a/', backing: 'file', directory: '/x', \(options) }, { keys: 'a/b/', read: ['group:audio'] } ] }"
            )
            #expect(found.count == 1 && found[0].hasPrefix("rules[1].mode: "), "\(found)")
        }
        #expect(faults("{ rules: [ { keys: 'a', trim: true, mode: '0600' } ] }").count == 2)
    }
}
