import Glibc
import StateEngine
import StateJSON
import StateRules
import Testing

/// What users could do with files although rules forbid it for their keys, and patterns of rules.
struct FileRuleTests {
    private func configuration(_ rules: [String]) throws(OptionFault) -> Configuration {
        let accounts = AccountDirectory(
            user: { ["root": 0, "ann": 100_000, "bob": 100_001][$0] },
            group: { ["audio": 29][$0] }
        )
        let document = JSON5Document(Array("{ rules: [ \(rules.joined(separator: ",\n")) ] }".utf8))
        return try Configuration(document.value, accounts: accounts)
    }

    private func faults(_ rules: String...) -> [String] {
        do throws(OptionFault) {
            _ = try configuration(rules)
            return []
        } catch { return error.all.map(\.description) }
    }

    private func file(_ options: String, keys: String = "a/") -> String {
        "{ keys: '\(keys)', backing: 'file', directory: '/x', \(options) }"
    }

    @Test(
        arguments: [
            ("mode: '0644'", "read: ['group:audio']", "everybody could read"),
            ("mode: '0640'", "read: ['group:audio']", "their group could read"),
            ("mode: '0640', group: '5'", "read: ['group:audio']", "their group could read"),
            ("mode: '0640', group: 'audio'", "read: ['group:audio']", nil),
            ("mode: '0646'", "write: ['root']", "everybody could write"),
            ("mode: '0660'", "write: ['root']", "their group could write"),
            ("mode: '0660', group: '5'", "write: ['group:audio']", "their group could write"),
            ("mode: '0660', group: 'audio'", "write: ['group:audio']", nil),
            ("mode: '0664', group: 'audio'", "write: ['group:audio']", nil),
            ("mode: '0666'", "write: ['*']", nil), ("mode: '0644'", "write: ['root']", nil),
            ("mode: '0602'", "readonly: true", "everybody could write"),
            ("mode: '0660', group: 'audio'", "readonly: true", "their group could write"),
            ("mode: '0666'", "readonly: false", nil),
            ("mode: '0620', group: 'audio'", "writeOnce: true", "their group could write"),
            ("mode: '0666'", "writeOnce: false", nil),
        ] as [(String, String, String?)]
    )
    func `a mode lets nobody do with files what a rule forbids for keys`(
        options: String,
        restriction: String,
        message: String?
    ) {
        for keys in ["a/b/", "a/b", "a/*/c", "/", "a/"] {
            let found =
                keys == "a/"
                ? faults(file("\(options), \(restriction)"))
                : faults(file(options), "{ keys: '\(keys)', \(restriction) }")
            #expect(found.count == (message == nil ? 0 : 1), "\(keys): \(found)")
            if let message { #expect(found.first?.hasPrefix("rules[1].mode: \(message)") ?? false) }
        }
        for keys in ["b/", "b/*", "b"] {
            #expect(faults(file(options), "{ keys: '\(keys)', \(restriction) }").isEmpty)
        }
    }

    @Test func `only a rule that applies to some key of the files counts`() throws {
        let open = file("mode: '0644'", keys: "a/one/")
        for keys in ["a/o", "a/two/", "a/?/x", "*two", "a/[p-z]*"] {
            let isMet = keys == "*two"
            #expect(
                faults(open, "{ keys: '\(keys)', read: ['root'] }").isEmpty == !isMet,
                "\(keys)"
            )
            let rules = try configuration([
                file("owner: 'root'", keys: "a/one/"), "{ keys: '\(keys)', read: ['root'] }",
            ])
            .rules
            #expect(rules.form(of: rules.rules[0]).mode == (isMet ? 0o600 : nil), "\(keys)")
        }
        // The rule of the files is the more specific one.
        #expect(
            faults(
                "{ keys: '/', read: ['root'], write: ['root'] }",
                file("mode: '0666', read: ['*'], write: ['*']")
            )
            .isEmpty
        )
        #expect(
            faults("{ keys: 'a/b/', read: ['root'] }", file("mode: '0666', read: ['*']")).count == 1
        )
    }

    @Test func `the owner of files is one who may read the keys`() throws {
        for (options, restriction, isAllowed) in [
            ("owner: 'ann'", "read: ['root']", false), ("owner: 'ann'", "read: ['bob']", false),
            ("owner: 'ann'", "read: ['owner']", false), ("owner: 'ann'", "read: []", false),
            ("owner: 'ann'", "read: ['group:audio']", false),
            ("owner: 'ann', mode: '0600'", "read: ['root']", false),
            ("owner: 'ann'", "read: ['bob', 'ann']", true), ("owner: 'ann'", "read: ['*']", true),
            ("owner: 'root'", "read: ['bob']", true), ("owner: '\(geteuid())'", "read: []", true),
        ] {
            let found = faults(file(options), "{ keys: 'a/b/', \(restriction) }")
            #expect(found.isEmpty == isAllowed, "\(options) \(restriction): \(found)")
            if !isAllowed {
                #expect(
                    found.count == 1 && found[0].hasPrefix("rules[1].owner: the owner could read")
                )
            }
        }
        let written = try configuration([file("owner: 'ann', write: ['root']")])
        #expect(
            written.warnings.count == 1
                && written.warnings[0].description.hasPrefix("rules[1].owner: the owner can write")
        )
        #expect(try configuration([file("owner: 'ann', write: ['ann']")]).warnings.isEmpty)
    }

    // MARK: Globs

    @Test(arguments: [
        ("user/*/", #"write "user/*/*" or "user/""#), ("us*/", #"write "us*/*" or "/""#),
        ("a/b[cd]/x/", #"write "a/b[cd]/x/*" or "a/""#), ("?/", #"write "?/*" or "/""#),
    ])
    func `a glob that ends in a slash matches no key`(keys: String, advice: String) {
        let found = faults(
            "{ keys: '\(keys)', read: ['root'] }",
            "{ keys: ['a', '\(keys)'], history: 0 }"
        )
        #expect(found.count == 2, "\(found)")
        #expect(found.first?.hasPrefix("rules[1].keys: \"\(keys)\" matches no key") ?? false)
        #expect(found.allSatisfy { $0.hasSuffix(advice) }, "\(found)")
        #expect(found.last?.hasPrefix("rules[2].keys[2]: ") ?? false)
    }

    @Test(arguments: ["user//*", "*//x", "a//b/"])
    func `a pattern with two slashes is probably not meant`(keys: String) throws {
        let found = try configuration(["{ keys: '\(keys)', readonly: true }"]).warnings
        #expect(found.map(\.path.description) == ["rules[1].keys"])
        #expect(
            found.first?.message.hasPrefix("\"\(keys)\" matches only keys with nothing") ?? false
        )
    }

    @Test(arguments: ["user/*", "user/*/x", "/", "a/", "a//b", "a/[/]*"])
    func `other patterns are taken as they are`(keys: String) throws {
        #expect(try configuration(["{ keys: '\(keys)', readonly: true }"]).warnings.isEmpty)
    }

    @Test(arguments: [(2_000, 5, 0), (2_002, 5, 1), (60, 200, 0), (150, 200, 1)])
    func `of too many globs not all are compared, and that is said`(
        count: Int,
        length: Int,
        warningCount: Int
    ) throws {
        // They begin and end alike, and no two meet.
        let rules = (0..<count).map { number in
            let digits = String(number)
            let name = String(repeating: "0", count: length - digits.count) + digits
            return "{ keys: 'a?\(name)*', readonly: true }"
        }
        let warnings = try configuration(rules).warnings
        #expect(warnings.count == warningCount)
        #expect(
            warnings.allSatisfy {
                $0.path.steps.last == .member("keys")
                    && $0.message.hasPrefix("there are too many globs")
            }
        )
    }
}
