import StateTestSupport
import Testing

/// Files that `stated --check-config` refuses, each with the line and the column of what is wrong, and what may stand there.
struct BrokenConfigurationTests {
    private static let files: [(text: String, place: String, words: String)] = [
        (#""#, "1:1", #"expected a value"#),
        (#"{"#, "1:2", #"expected '}'"#),
        (#"[]"#, "1:1", #"expected an object in { }, not an array"#),
        (#"0X0x"#, "1:1", #"unexpected '0X0x'; strings need quotes"#),
        (#"5"#, "1:1", #"expected an object in { }, not 5"#),
        (#"{ data }"#, "1:8", #"expected ':' after data"#),
        (#"{ data: }"#, "1:9", #"expected a value"#),
        (#"{ data: '/x' limits: {} }"#, "1:14", #"expected ',' or '}'"#),
        (#"{ data: '/x', data: '/y' }"#, "1:15", #"data: this option appears twice"#),
        (#"{\#n  // only\#n  socket: { mode: "0660" }\#n"#, "4:1", #"expected '}'"#),
        (#"{ data: "/x }"#, "1:9", #"this string has no closing quote"#),
        (#"{ limits: { clients: 1,, } }"#, "1:24", #"expected a name"#),
        (#"{ limits: { clients: 01 } }"#, "1:22", #"unexpected '01'; strings need quotes"#),
        (#"{ a-b: 1 }"#, "1:3", #"the name 'a-b' needs quotes"#),
        (#"{} {}"#, "1:4", #"unexpected text after the value"#),
        (#"/* no end"#, "1:1", #"this comment has no closing '*/'"#),
        (#"{ data: /var }"#, "1:9", #"expected a value"#),
        (#"{ rules: [ { keys: tru } ] }"#, "1:20", #"unexpected 'tru'; strings need quotes"#),
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
            #"{ socket: {\#n    group: 'no-such-group' } }"#, "2:5",
            #"socket.group: this machine has no group "no-such-group""#
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
            #"limits.valueBytes: expected at most 67107840: a value and its key must fit into limits.transactionBytes"#
        ),
        (
            #"{ limits: { outputBytes: '1KiB' } }"#, "1:13",
            #"limits.outputBytes: expected at least 65536, not '1KiB'"#
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
            "limits.memoryBytes: expected at least 16777216, not '1MiB'"
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
            #"history.changes: expected a whole number from 0 to 9223372036854775807, not -1"#
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
            #"rules[0]: 'keys' is missing; expected a key, a prefix that ends in /, or a glob"#
        ),
        (
            #"{ rules: [ 'audio/' ] }"#, "1:12",
            #"rules[0]: expected an object in { }, not "audio/""#
        ),
        (
            #"{ rules: [ { keys: 'a//' }, { keys: '' } ] }"#, "1:14",
            #"rules[0].keys: key 'a//' ends in '/', which is how a prefix is written, not a key"#
        ),
        (
            #"{ rules: [ { keys: 'a', readonly: 'yes' } ] }"#, "1:25",
            #"rules[0].readonly: expected true or false, not "yes""#
        ),
        (
            #"{ rules: [ { keys: 'a', writeonce: true } ] }"#, "1:25",
            #"rules[0].writeonce: unknown option; did you mean 'writeOnce'?"#
        ),
        (
            #"{ rules: [ { keys: 'a', readonly: true },\#n           { keys: 'a', readonly: true } ] }"#,
            "2:25",
            #"rules[1].readonly: rules[0] sets this option too, and neither rule is more specific for 'a'; remove one"#
        ),
        (
            #"{ rules: [ { keys: 'a', limits: { valueBytes: -5 } } ] }"#, "1:35",
            #"rules[0].limits.valueBytes: expected bytes such as 65536, 64KiB, 8MiB, 1GiB or 2TiB, not '-5'"#
        ),
        (
            #"{ rules: [ { keys: 'a', limits: { bytez: 5 } } ] }"#, "1:35",
            #"rules[0].limits.bytez: unknown option; did you mean 'bytes'?"#
        ),
        (
            #"{ rules: [ { keys: 'a/', default: 1 } ] }"#, "1:26",
            #"rules[0].default: a default needs one key in 'keys', not a pattern"#
        ),
        (
            #"{ rules: [ { keys: 'a', directory: '/x' } ] }"#, "1:25",
            #"rules[0].directory: it needs backing: "file" in the same rule"#
        ),
        (
            #"{ rules: [ { keys: 'a', backing: 'disk' } ] }"#, "1:25",
            #"rules[0].backing: expected one of sqlite, file, memory, not "disk""#
        ),
        (
            #"{ rules: [ { keys: 'a/', backing: 'file' } ] }"#, "1:12",
            #"rules[0]: backing: "file" needs a directory"#
        ),
        (
            #"{ rules: [ { keys: 'a', write: ['no-such-user'] } ] }"#, "1:33",
            #"rules[0].write[0]: this machine has no user "no-such-user"; write "group:NAME" for a group, "*" for everybody"#
        ),
        (
            #"{ rules: [ { keys: 'a', read: 'root' } ] }"#, "1:25",
            #"rules[0].read: expected an array in [ ], not "root""#
        ),
        (
            #"{ rules: [ { keys: 'a', durability: 'disk' } ] }"#, "1:25",
            #"rules[0].durability: expected one of memory, interval, written, synced, not "disk""#
        ),
        (
            #"{ rules: [ { keys: 'a', expire: '0s' } ] }"#, "1:25",
            #"rules[0].expire: expected a time above 0"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: {\#n  type: 'text' } } ] }"#, "2:3",
            #"rules[0].schema.type: expected one of null, boolean, integer, number, string, array, object, not "text""#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { minimun: 0 } } ] }"#, "1:35",
            #"rules[0].schema.minimun: unknown option; did you mean 'minimum'?"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { minimum: '0' } } ] }"#, "1:35",
            #"rules[0].schema.minimum: expected a number, not "0""#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { pattern: '(a)\\1' } } ] }"#, "1:35",
            #"rules[0].schema.pattern: pattern '(a)\1': back-references are not supported at 3"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { pattern: '(' } } ] }"#, "1:35",
            #"rules[0].schema.pattern: pattern '(': '(' without ')' at 0"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { format: 'date' } } ] }"#, "1:35",
            #"rules[0].schema.format: expected one of email, date-time, uri, uuid, ipv4, ipv6, not "date""#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { items: { maxItems: -1 } } } ] }"#, "1:44",
            #"rules[0].schema.items.maxItems: expected a whole number from 0, not -1"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { properties: { 'x y': 5 } } } ] }"#, "1:49",
            #"rules[0].schema.properties["x y"]: expected an object in { }, not 5"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { multipleOf: 0 } } ] }"#, "1:35",
            #"rules[0].schema.multipleOf: expected a number above 0 of at most 19 digits, not 0"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { enum: 5 } } ] }"#, "1:35",
            #"rules[0].schema.enum: expected an array in [ ], not 5"#
        ),
        (
            #"{ rules: [ { keys: 'a', schema: { required: [ 'x', 5 ] } } ] }"#, "1:52",
            #"rules[0].schema.required[1]: expected a string in quotes, not 5"#
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
        #expect(result.errorText == "stated: error: \(path):\(place): \(words)\n")
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
