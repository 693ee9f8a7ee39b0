import StateContainers
import StateEngine
import StateJSON
import StateRules
import Testing

/// What a configuration says, and what it may not say.
struct ConfigurationTests {
    private let accounts = AccountDirectory(
        user: { ["root": 0, "ann": 1_000][$0] },
        group: { ["audio": 29][$0] }
    )

    private func read(_ text: String) throws -> Configuration {
        try Configuration(JSONValue(parsing: Array(text.utf8)), accounts: accounts)
    }

    private func resolved(_ configuration: Configuration, _ key: String) -> KeyRule.Settings {
        let rule = Array(key.utf8).withUnsafeBytes { configuration.rules.byKey.rule(for: $0) }
        return rule?.settings ?? KeyRule.Settings()
    }

    @Test func `each option comes from the most specific rule that names it`() throws {
        let configuration = try read(
            #"""
            {"rules": [
              {"keys": "audio/", "schema": {"type": "number", "minimum": 0}, "write": ["group:audio", "root"]},
              {"keys": "audio/volume", "default": 0.5},
              {"keys": "a*", "durability": "memory", "expire": "5m"},
              {"keys": "audio/*", "durability": "synced"},
              {"keys": "audio/deep/", "schema": {"type": "string"}},
              {"keys": "/", "limits": {"valueBytes": "64KiB"}, "readonly": false}
            ]}
            """#
        )
        let volume = resolved(configuration, "audio/volume")
        #expect(volume.schema?.rule == 0)
        #expect(volume.standard.map { $0.value } == Array("0.5".utf8) && volume.standard?.rule == 1)
        #expect(volume.durability?.value == .synced && volume.durability?.rule == 3)
        #expect(volume.expiry?.value == .seconds(300) && volume.expiry?.rule == 2)
        #expect(volume.limits[.valueBytes]?.value == 65_536 && volume.isReadOnly?.rule == 5)
        #expect(
            volume.access[.write]?.value == [.group(29, name: "audio"), .user(0, name: "root")]
        )
        #expect(resolved(configuration, "audio/deep/x").schema?.rule == 4)
        #expect(resolved(configuration, "audio/deep/x").access[.write]?.rule == 0)
        #expect(resolved(configuration, "b").schema == nil)
    }

    @Test(
        arguments: [
            ("0", KeyRetention(changeCount: 0)),
            (#"{"changes": 10}"#, KeyRetention(changeCount: 10)),
            (#"{"age": "1d"}"#, KeyRetention(age: .seconds(86_400))),
            (#"{"changes": 0, "age": "2h"}"#, KeyRetention(changeCount: 0, age: .seconds(7_200))),
        ]
    )
    func `how much history a rule keeps`(text: String, retention: KeyRetention) throws {
        let configuration = try read(#"{"rules": [{"keys": "a/", "history": \#(text)}]}"#)
        #expect(resolved(configuration, "a/b").history?.value == retention)
        #expect(resolved(configuration, "b").history == nil)
    }

    @Test(
        arguments: [
            ("10", "expected 0, or an object such as { changes: 10, age: \"1d\" }, not 10"),
            ("{}", "expected 'changes', 'age' or both"),
            (#"{"versions": 1}"#, "unknown option"),
            (#"{"changes": -1}"#, "expected a whole number"),
        ]
    )
    func `how much history a rule cannot keep`(text: String, fault: String) {
        #expect {
            try read(#"{"rules": [{"keys": "a/", "history": \#(text)}]}"#)
        } throws: {
            "\($0)".contains(fault)
        }
    }

    @Test func `what is written is what holds`() throws {
        let configuration = try read(
            #"""
            {"socket": {"path": "/run/s", "mode": "0660", "group": "audio"}, "data": "/var/lib/stated",
             "limits": {"valueBytes": "1MiB", "clients": 500},
             "history": {"age": "6d", "changes": 2000000, "bytes": "2GiB"}}
            """#
        )
        #expect(configuration.socket.path == "/run/s" && configuration.socket.mode == 0o660)
        #expect(configuration.socket.group == 29)
        #expect(configuration.dataDirectory == "/var/lib/stated")
        #expect(configuration.limits[.valueBytes] == 1 << 20)
        #expect(configuration.limits[.clients] == 500)
        #expect(configuration.history.age == .seconds(6 * 86_400))
        #expect(configuration.history.changeCount == 2_000_000)
        #expect(configuration.history.byteCount == 2 << 30)
        let same = try Configuration(.object([:]), over: configuration, accounts: accounts)
        #expect(same.socket.path == "/run/s" && same.limits[.clients] == 500)
        #expect(same.limits[.watches] == 1_000 && same.history == configuration.history)
    }

    @Test(arguments: [
        (
            #"{"rules": [{"keys": "a", "expire": "9223372036854775807ms"}]}"#,
            "rules[1].expire: expected at most 36500d (100 years), not '9223372036854775807ms'"
        ),
        (
            #"{"rules": [{"keys": "a", "expire": "106751991167d"}]}"#,
            "rules[1].expire: expected at most 36500d (100 years), not '106751991167d'"
        ),
        (
            #"{"history": {"age": "36501d"}}"#,
            "history.age: expected at most 36500d (100 years), not '36501d'"
        ),
        (
            #"{"rules": [{"keys": "a", "limits": {"depth": 1000000}}]}"#,
            "rules[1].limits.depth: expected a whole number from 0 to 512, not 1000000"
        ),
        (#"{"sockets": {}}"#, "sockets: unknown option; did you mean 'socket'?"),
        (#"{"data": "var"}"#, #"data: expected an absolute path, not "var""#),
        (
            #"{"limits": {"clients": 0}}"#,
            "limits.clients: expected a whole number from 1 to 1000000, not 0"
        ),
        (
            #"{"limits": {"valueBytes": "8MB"}}"#,
            "limits.valueBytes: expected bytes such as 65536, 64KiB, 8MiB, 1GiB or 2TiB, not '8MB'"
        ),
        (
            #"{"limits": {"valueBytes": "64MiB"}}"#,
            "limits.valueBytes: expected at most 65535KiB: a value and its key must fit into limits.transactionBytes"
        ),
        (#"{"socket": {"mode": 660}}"#, "socket.mode: expected a string in quotes, not 660"),
        (
            #"{"history": {"age": "7 days"}}"#,
            "history.age: expected a time such as 500ms, 30s, 5m, 12h, 7d, 2w or 1h30m, not '7 days'"
        ),
        (#"{"rules": {}}"#, "rules: expected an array in [ ], not an object"),
        (
            #"{"rules": [{}]}"#,
            "rules[1]: 'keys' is missing; expected a key, a prefix that ends in /, or a glob"
        ),
        (
            #"{"rules": [{"keys": "a/", "default": 1}]}"#,
            "rules[1].default: a default needs one key in 'keys', not a pattern"
        ),
        (
            #"{"rules": [{"keys": "a/", "directory": "/x"}]}"#,
            #"rules[1].directory: it needs backing: "file" in the same rule"#
        ),
        (
            #"{"rules": [{"keys": "a/", "backing": "file"}]}"#,
            #"rules[1]: backing: "file" needs a directory"#
        ),
        (
            #"{"rules": [{"keys": "a/", "write": ["bob"]}]}"#,
            #"rules[1].write[1]: this machine has no user "bob"; write "group:NAME" for a group, "*" for everybody"#
        ),
        (
            #"{"rules": [{"keys": "a/", "readonly": true}, {"keys": "a/", "readonly": false}]}"#,
            "rules[2].readonly: rule 1 sets this option too, and neither rule is more specific for 'a/'; remove one"
        ),
        (
            #"{"rules": [{"keys": "a/", "backing": "file", "directory": "/etc/app"}, {"keys": "b/", "backing": "file", "directory": "/etc/app/sub"}]}"#,
            "rules[2].directory: /etc/app/sub overlaps /etc/app of rule 1; each rule needs its own directory"
        ),
        (
            #"{"rules": [{"keys": "a/", "schema": {"type": "number"}}, {"keys": "a/b", "default": "x"}]}"#,
            "rules[2].default: the schema of rule 1 refuses it: 'x' is not of type number"
        ),
        (
            #"{"rules": [{"keys": "a/", "limits": {"valueBytes": 4}}, {"keys": "a/b", "default": "12345"}]}"#,
            "rules[2].default: it has 5 bytes; limits.valueBytes of rule 1 allows at most 4"
        ),
        (
            #"{"rules": [{"keys": "a/", "limits": {"depth": 1}}, {"keys": "a/b", "schema": {"type": "array"}, "default": [[1]]}]}"#,
            "rules[2].default: the schema of rule 2 refuses it: arrays and objects are nested deeper than 1 at byte 1"
        ),
        (
            #"{"socket": {"path": "/\#(String(repeating: "a", count: 107))"}}"#,
            "socket.path: expected a path of at most 107 bytes, not of 108"
        ),
    ])
    func `what cannot be used is named with its place`(text: String, message: String) {
        let fault = #expect(throws: OptionFault.self) { _ = try read(text) }
        #expect(fault?.description == message)
    }
}
