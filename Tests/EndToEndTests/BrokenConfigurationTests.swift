import Glibc
import StateTestSupport
import Testing

/// Files that `stated --check-config` refuses, each with the line and the column of what is wrong, and what may stand there.
struct BrokenConfigurationTests {
    private static let files: [(text: String, place: String, words: String)] = [
        (#""#, "1:1", #"expected a value"#),
        (#"{"#, "1:2", #"expected '}'"#),
        (#"[]"#, "1:1", #"expected an object in { }, not an array"#),
        (
            #"0X0x"#, "1:1",
            #"unexpected '0X0x'; expected a number, true, false, null, or a string in quotes"#
        ),
        (#"5"#, "1:1", #"expected an object in { }, not 5"#),
        (#"{ data }"#, "1:8", #"expected ':' after data"#),
        (#"{ data: }"#, "1:9", #"expected a value"#),
        (#"{ data: '/x' limits: {} }"#, "1:14", #"expected ',' or '}'"#),
        (#"{ data: '/x', data: '/y' }"#, "1:15", #"data: this option appears twice"#),
        (#"{\#n  // only\#n  socket: { mode: "0660" }\#n"#, "4:1", #"expected '}'"#),
        (#"{ data: "/x }"#, "1:9", #"this string has no closing quote"#),
        (#"{ limits: { clients: 1,, } }"#, "1:24", #"expected a name"#),
        (
            #"{ limits: { clients: 01 } }"#, "1:22",
            #"unexpected '01'; expected a number, true, false, null, or a string in quotes"#
        ),
        (#"{ a-b: 1 }"#, "1:3", #"the name 'a-b' needs quotes"#),
        (#"{} {}"#, "1:4", #"unexpected text after the value"#),
        (#"/* no end"#, "1:1", #"this comment has no closing '*/'"#),
        (#"{ data: /var }"#, "1:9", #"expected a value"#),
        (
            #"{ rules: [ { keys: tru } ] }"#, "1:20",
            #"unexpected 'tru'; expected a number, true, false, null, or a string in quotes"#
        ),
        (#"{ sockets: {} }"#, "1:3", #"sockets: unknown option; did you mean 'socket'?"#),
        (
            #"{\#n  datta: '/x',\#n}"#, "2:3",
            #"datta: unknown option; did you mean 'data'?"#
        ),
        (#"{ data: 5 }"#, "1:3", #"data: expected a string in quotes, not 5"#),
        (#"{ data: 'var/lib' }"#, "1:3", #"data: expected an absolute path, not "var/lib""#),
        (#"{ socket: [] }"#, "1:3", #"socket: expected an object in { }, not an array"#),
        (#"{ rules: {} }"#, "1:3", #"rules: expected an array in [ ], not an object"#),
        (#"{ history: null }"#, "1:3", #"history: expected an object in { }, not null"#),
        (
            #"{ socket: { path: 'relative' } }"#, "1:13",
            #"socket.path: expected an absolute path, not "relative""#
        ),
        (
            #"{ socket: { mode: 660 } }"#, "1:13",
            #"socket.mode: expected a string in quotes, not 660"#
        ),
        (
            #"{ socket: { mode: '0888' } }"#, "1:13",
            #"socket.mode: expected octal permission bits in quotes, such as "0660", not "0888""#
        ),
        (
            #"{ socket: { mode: '0060' } }"#, "1:13",
            #"socket.mode: expected octal permission bits in quotes, such as "0660", not "0060""#
        ),
        (
            #"{ socket: { port: 5 } }"#, "1:13",
            #"socket.port: unknown option; known options: group, mode, path"#
        ),
        (
            #"{ limits: { client: 5 } }"#, "1:13",
            #"limits.client: unknown option; did you mean 'clients'?"#
        ),
        (
            #"{ limits: { clients: 0 } }"#, "1:13",
            #"limits.clients: expected a whole number from 1 to 1000000, not 0"#
        ),
        (
            #"{ limits: { clients: 1.5 } }"#, "1:13",
            #"limits.clients: expected a whole number from 1 to 1000000, not 1.5"#
        ),
        (
            #"{ limits: { valueBytes: '8MB' } }"#, "1:13",
            #"limits.valueBytes: expected bytes such as 65536, 64KiB, 8MiB, 1GiB or 2TiB, not '8MB'"#
        ),
        (
            #"{ limits: { valueBytes: '64MiB' } }"#, "1:13",
            #"limits.valueBytes: expected at most 65535KiB: a value and its key must fit into limits.transactionBytes"#
        ),
        (
            #"{ limits: { outputBytes: '1KiB' } }"#, "1:13",
            #"limits.outputBytes: expected at least 64KiB, not '1KiB'"#
        ),
        (
            #"{ limits: { watches: '5' } }"#, "1:13",
            #"limits.watches: expected a whole number from 1 to 1000000, not "5""#
        ),
        (
            #"{ limits: { inputBytes: true } }"#, "1:13",
            #"limits.inputBytes: expected a number of bytes, such as "8MiB", not true"#
        ),
        (
            #"{ limits: { rest: "11s" } }"#, "1:13",
            "limits.rest: expected at most 10s, not 11s"
        ),
        (
            #"{ limits: { frameTimeout: "2d" } }"#, "1:13",
            "limits.frameTimeout: expected at most 1d, not 2d"
        ),
        (
            #"{ limits: { memoryBytes: "1MiB" } }"#, "1:13",
            "limits.memoryBytes: expected at least 16MiB, not '1MiB'"
        ),
        (
            #"{ history: { age: '7 days' } }"#, "1:14",
            #"history.age: expected a time such as 500ms, 30s, 5m, 12h, 7d, 2w or 1h30m, not '7 days'"#
        ),
        (
            #"{ history: { age: 7 } }"#, "1:14",
            #"history.age: expected a time such as 500ms, 30s, 5m, 12h, 7d, 2w or 1h30m, not '7'"#
        ),
        (
            #"{ history: { changes: -1 } }"#, "1:14",
            #"history.changes: expected a whole number from 0, not -1"#
        ),
        (
            #"{ history: { bytes: '9999999TiB' } }"#, "1:14",
            #"history.bytes: expected at most 9223372036854775807, not '9999999TiB'"#
        ),
        (
            #"{ history: { rows: 5 } }"#, "1:14",
            #"history.rows: unknown option; known options: age, bytes, changes"#
        ),
        (
            #"{ rules: [\#n  { schema: {} } ] }"#, "2:3",
            #"rules[1]: 'keys' is missing; expected a key, a prefix that ends in /, or a glob"#
        ),
        (
            #"{ rules: [ 'audio/' ] }"#, "1:12",
            #"rules[1]: expected an object in { }, not "audio/""#
        ),
        (
            #"{ rules: [ { keys: 'a//' }, { keys: '' } ] }"#, "1:14",
            #"rules[1].keys: key 'a//' ends in '/', which is how a prefix is written, not a key"#
        ),
        (
            #"{ rules: [ { keys: 'a', readonly: 'yes' } ] }"#, "1:25",
            #"rules[1].readonly: expected true or false, not "yes""#
        ),
        (
            #"{ rules: [ { keys: 'a', writeonce: true } ] }"#, "1:25",
            #"rules[1].writeonce: unknown option; did you mean 'writeOnce'?"#
        ),
        (
            #"{ rules: [ { keys: 'a', readonly: true },\#n           { keys: 'a', readonly: true } ] }"#,
            "2:25",
            #"rules[2].readonly: rule 1, line 1 sets this option too, and neither rule is more specific for 'a'; remove one"#
        ),
        (
            #"{ rules: [ { keys: 'a', limits: { valueBytes: -5 } } ] }"#, "1:35",
            #"rules[1].limits.valueBytes: expected bytes such as 65536, 64KiB, 8MiB, 1GiB or 2TiB, not '-5'"#
        ),
        (
            #"{ rules: [ { keys: 'a', limits: { bytez: 5 } } ] }"#, "1:35",
            #"rules[1].limits.bytez: unknown option; did you mean 'bytes'?"#
        ),
        (
            #"{ rules: [ { keys: 'a/', default: 1 } ] }"#, "1:26",
            #"rules[1].default: a default needs one key in 'keys', not a pattern"#
        ),
        (
            #"{ rules: [ { keys: 'a', directory: '/x' } ] }"#, "1:25",
            #"rules[1].directory: it needs backing: "file" in the same rule"#
        ),
        (
            #"{ rules: [ { keys: 'a', backing: 'disk' } ] }"#, "1:25",
            #"rules[1].backing: "disk" is not one of "sqlite", "file", "memory", "cluster""#
        ),
        (
            #"{ rules: [ { keys: 'a/', backing: 'file' } ] }"#, "1:12",
            #"rules[1]: backing: "file" needs a directory"#
        ),
        (
            #"{ rules: [ { keys: 'a', read: 'root' } ] }"#, "1:25",
            #"rules[1].read: expected an array in [ ], not "root""#
        ),
        (
            #"{ rules: [ { keys: 'a', durability: 'disk' } ] }"#, "1:25",
            #"rules[1].durability: "disk" is not one of "memory", "interval", "synced""#
        ),
        (
            #"{ rules: [ { keys: 'a', expire: '0s' } ] }"#, "1:25",
            #"rules[1].expire: expected a time above 0"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: {\#n  type: 'text' } } ] }"#, "2:3",
            #"rules[1].schema.type: "text" is not one of "null", "boolean", "integer", "number", "string", "array", "object""#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { minimun: 0 } } ] }"#, "1:35",
            #"rules[1].schema.minimun: unknown option; did you mean 'minimum'?"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { minimum: '0' } } ] }"#, "1:35",
            #"rules[1].schema.minimum: expected a number, not "0""#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { pattern: '(a)\\1' } } ] }"#, "1:35",
            #"rules[1].schema.pattern: pattern '(a)\1': back-references are not supported at 3"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { pattern: '(' } } ] }"#, "1:35",
            #"rules[1].schema.pattern: pattern '(': '(' without ')' at 0"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { format: 'day' } } ] }"#, "1:35",
            #"rules[1].schema.format: "day" is not one of "email", "idn-email", "date-time", "date", "time", "duration", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer", "regex""#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { items: { maxItems: -1 } } } ] }"#, "1:44",
            #"rules[1].schema.items.maxItems: expected a whole number from 0, not -1"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { properties: { 'x y': 5 } } } ] }"#, "1:49",
            #"rules[1].schema.properties["x y"]: expected an object in { }, not 5"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { multipleOf: 0 } } ] }"#, "1:35",
            #"rules[1].schema.multipleOf: expected a number above 0 of at most 19 digits, not 0"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { enum: 5 } } ] }"#, "1:35",
            #"rules[1].schema.enum: expected an array in [ ], not 5"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { required: [ 'x', 5 ] } } ] }"#, "1:52",
            #"rules[1].schema.required[2]: expected a string in quotes, not 5"#
        ),
        (
            #"{ rules: [ { keys: 'user/*/', readonly: true } ] }"#, "1:14",
            #"rules[1].keys: "user/*/" matches no key, because no key ends in /; write "user/*/*" or "user/""#
        ),
        (
            #"{ rules: [ { keys: 'a/', read: ['root'], mode: '0644', backing: 'file', directory: '/x' } ] }"#,
            "1:42",
            #"rules[1].mode: everybody could read the files, but rule 1, line 1 restricts who may read the keys; remove these bits, or name a group that may read them"#
        ),
        (
            #"{ rules: [ { keys: 'a/', write: ['root'], mode: '0620', backing: 'file', directory: '/x' } ] }"#,
            "1:43",
            #"rules[1].mode: their group could write the files, but rule 1, line 1 restricts who may write the keys; remove these bits, or name a group that may write them"#
        ),
        (
            #"{ rules: [ { keys: 'a/', read: ['root'], owner: '54321', backing: 'file', directory: '/x' } ] }"#,
            "1:42",
            #"rules[1].owner: the owner could read the files, but rule 1, line 1 restricts who may read the keys; name a user there that may read them, or add the owner to 'read'"#
        ),
    ]

    @Test(arguments: files)
    func `a broken file is refused with the place of what is wrong`(
        text: String,
        place: String,
        words: String
    ) throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(text, to: "c.json5")
        let result = try runCommand(builtProgram("stated"), ["--check-config", path])
        #expect(result.exitCode == 2 && result.text.isEmpty)
        let lines = result.errorText.split(separator: "\n").map { String($0) }
        #expect(lines.first == "stated: error: \(path):\(place): \(words)")
        // The line, and the caret below the column.
        let parts = place.split(separator: ":").compactMap { Int($0) }
        try #require(lines.count >= 3 && parts.count == 2)
        #expect(lines[1].hasPrefix("  \(parts[0]) | "))
        let column = min(parts[1], 62)
        #expect(
            lines[2].firstIndex(of: "^").map {
                lines[2].distance(from: lines[2].startIndex, to: $0)
            }
                == "  \(parts[0]) | ".count + column - 1
        )
    }

    @Test func `ten mistakes are told in one run, each at its place`() throws {
        let text = #"""
            {
              socket: { mode: 660 },
              limits: { client: 500, valueBytes: "8MB" },
              rules: [
                { keys: "a/", schema: { type: "string", pattern: "^\d+$" } },
                { keys: "b/", readonly: yes },
                { keys: "c/", expire: "5 minutes" },
                { keys: "d/", shema: {} },
                { schema: { type: "text" } },
                { keys: "e/", writeOnce: true, writeOnce: false }
                { keys: "f/", default: 1 },
              ],
            }
            """#
        let directory = try TemporaryDirectory()
        let path = try directory.write(text, to: "c.json5")
        let result = try runCommand(builtProgram("stated"), ["--check-config", path])
        let errors = result.errorText.split(separator: "\n").filter {
            $0.hasPrefix("stated: error: \(path):")
        }
        let places = errors.map { line in
            line.dropFirst("stated: error: \(path):".count).split(separator: ":").prefix(2).joined(
                separator: ":"
            )
        }
        #expect(result.exitCode == 2)
        #expect(
            places == [
                "2:13", "3:13", "3:26", "5:56", "6:29", "7:19", "8:19", "9:5", "9:17", "10:36",
                "11:5", "11:19",
            ]
        )
        #expect(
            errors[3].hasSuffix(
                ##"'\d' is not an escape; in a pattern write the backslash twice: "^\\d+$""##
            )
        )
        #expect(result.errorText.hasSuffix("stated: error: 12 errors\n"))
    }

    @Test func `standard input is read, and warnings can be errors`() throws {
        func check(_ text: String, _ more: String...) throws -> CommandResult {
            try runCommand(
                builtProgram("stated"),
                ["--check-config", "-"] + more,
                input: Array(text.utf8)
            )
        }
        let absent =
            "{ socket: { group: 'no-such-group' }, rules: [ { keys: 'a', write: ['no-such-user'] } ] }"
        let warned = try check(absent)
        #expect(warned.exitCode == 0 && warned.text == "standard input is valid: 1 rule\n")
        #expect(
            warned.errorText.contains(
                "warning: standard input:1:13: socket.group: this machine has no group"
            )
        )
        #expect(
            warned.errorText.contains(
                "rules[1].write[1]: this machine has no user \"no-such-user\""
            )
        )
        let strict = try check(absent, "--all-warnings-are-errors")
        #expect(strict.exitCode == 2 && strict.text.isEmpty)
        #expect(try check("{}", "--all-warnings-are-errors").exitCode == 0)
        #expect(
            try check("{ rules: [ { keys: 'a/*/x', history: 0 }, { keys: 'a/*/y', history: 0 } ] }")
                .errorText.isEmpty
        )
        #expect(
            try check("{}", "--as", "no-such-user").errorText.contains(
                "warning: this machine has no user \"no-such-user\""
            )
        )
    }

    @Test(.enabled(if: geteuid() == 0)) func `directories are looked at with the rights of a user`()
        throws
    {
        let directory = try TemporaryDirectory()
        let place = directory.path(of: "d")
        mkdir(place, 0o700)
        chmod(directory.path, 0o755)
        let text = "{ rules: [\n { keys: 'a/', backing: 'file', directory: '\(place)' } ] }"
        let path = try directory.write(text, to: "c.json5")
        chmod(path, 0o644)
        let own = try runCommand(builtProgram("stated"), ["--check-config", path, "--as", "root"])
        #expect(own.exitCode == 0, "\(own)")
        let other = try runCommand(
            builtProgram("stated"),
            ["--check-config", path, "--as", "nobody"]
        )
        #expect(
            other.exitCode == 2 && other.errorText.contains("\(path):2:33: rules[1].directory: "),
            "\(other)"
        )
    }

    /// Reading it goes down as deep, and took minutes.
    @Test func `what is nested without end is refused`() throws {
        let text = "{ rules: " + String(repeating: "[", count: 1_000_000)
        try `a broken file is refused with the place of what is wrong`(
            text: text,
            place: "1:209",
            words: "nested deeper than 200"
        )
    }

    @Test func `there are fifty of them, and each is another`() {
        #expect(Self.files.count >= 50)
        #expect(Set(Self.files.map(\.text)).count == Self.files.count)
    }
}
