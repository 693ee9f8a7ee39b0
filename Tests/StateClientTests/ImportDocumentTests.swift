import StateClient
import StateEngine
import Testing

struct ImportDocumentTests {
    /// The entries as `key = value`, with `|` for line ends; or the line with the fault, and why.
    private func read(_ text: String, _ format: ImportDocument.Format) -> [String] {
        var document = ImportDocument(Array(text.utf8), format)
        var entries: [String] = []
        do {
            while let entry = try document.next() {
                let key = String(decoding: entry.name, as: UTF8.self)
                let line = entry.value.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: "|") : $0 }
                entries.append("\(key) = \(String(decoding: line, as: UTF8.self))")
            }
        } catch {
            return ["line \(document.line): \(error.message)"]
        }
        return entries
    }

    @Test(arguments: [
        ("A=b", "A = b"), ("A=", "A = "), ("A = b c ", "A = b c"), ("  export A=b", "A = b"),
        ("A=b # c", "A = b"), ("A= # c", "A = "), ("A='b' # c", "A = b"), ("A=\"\"", "A = "),
        ("A=\"b # c\"", "A = b # c"), (#"A="b\nc\"\\\$d""#, #"A = b|c"\$d"#),
        (#"A='b\n"$c'"#, #"A = b\n"$c"#), ("A='b\nc'", "A = b|c"), ("A=\"b\r\nc\"", "A = b|c"),
        ("A={\"b\": 1}", "A = {\"b\": 1}"), ("A=it's", "A = it's"), ("A==b", "A = =b"),
        ("a.b-c=1", "a.b-c = 1"), ("A=b\r\n", "A = b"), ("; c\n#A=b\nB=$5", "B = $5"),
    ])
    func `a variable has the value that a program would get`(text: String, entry: String) {
        #expect(read(text, .env) == [entry])
    }

    @Test(arguments: [
        ("A", "line 1: expected 'NAME=value'"), ("A B=c", "'A B' is no name"),
        ("\nA+=c", "line 2: 'A+' is no name"), ("A=$B", "replace variables"),
        ("A=\"${B}\"", "replace variables"), ("A=$(b)", "replace variables"),
        ("A=`b`", "backquotes"), (#"A=C:\b"#, "single quotes"), ("A=b#c", "single quotes"),
        (#"A="\q""#, "write \\\\"), ("A=\"b\"c", "unexpected 'c'"),
        ("A='b'# c", "unexpected '# c'"),
        ("B=1\nA='b\nc\n", "line 2: the value has no closing '"),
        ("A=1\nB=2\nA=3", "line 3: the key 'A' is in line 1 already"),
        ("A=1\rB=2", "carriage return"),
    ])
    func `a variable about which programs differ is refused with its line`(
        text: String,
        part: String
    ) {
        let found = read(text, .env)
        #expect(found.count == 1 && found[0].contains(part), "\(found)")
        #expect(found.first?.hasPrefix("line ") == true)
    }

    @Test func `a section of an INI file is a prefix`() {
        let text = """
            ; comment
            top=1\r
            [a b] ; comment
            # comment
              key   =   some text  \r
              path = C:\\dir
            [c/d]
            quoted = "x ; y" # comment
            single='z'
            empty =
            color = #fff
            """
        #expect(
            read(text, .ini) == [
                "top = 1", "a b/key = some text", #"a b/path = C:\dir"#, "c/d/quoted = x ; y",
                "c/d/single = z", "c/d/empty = ", "c/d/color = #fff",
            ]
        )
    }

    @Test(arguments: [
        ("[a", "no closing ]"), ("[a]x", "unexpected 'x'"), ("[]", "cannot be a prefix"),
        (#"[remote "origin"]"#, "cannot be a prefix"), ("key", "expected 'key = value'"),
        ("a: b=c", "a : before"), ("a = b ; c", "a comment begins"),
        ("a = b # c", "a comment begins"),
        ("a = b\\", "joins lines"), (#"a = "b\"c""#, "inside a value"),
        ("a = \"b", "inside a value"),
        (#"a = "b", "c""#, "unexpected ', \"c\"'"), ("a += b", "'+='"),
        ("[x]\na=\n  b=c", "line 3: the line is indented"),
        ("[x]\na=1\n[y]\n[x]\na=2", "line 5: the key 'a' is in line 2 already"),
    ])
    func `an option about which programs differ is refused with its line`(
        text: String,
        part: String
    ) {
        let found = read(text, .ini)
        #expect(found.count == 1 && found[0].contains(part), "\(found)")
        #expect(found.first?.hasPrefix("line ") == true)
    }

    // The lines are those of the documentation of java.util.Properties, and what Java makes of them.
    @Test(arguments: [
        ("Truth = Beauty", "Truth = Beauty"), (" Truth:Beauty", "Truth = Beauty"),
        ("Truth                    :Beauty", "Truth = Beauty"), ("Truth Beauty", "Truth = Beauty"),
        ("fruits   apple, \\\n    pear\\\r\n  , fig", "fruits = apple, pear, fig"),
        ("cheeses", "cheeses = "), (#"\:\= = x"#, ":= = x"), (#"a\ b=c\td\q"#, "a b = c\tdq"),
        (#"a=\u00e9\uD83C\uDF9A"#, "a = é🎚"), ("# c\n  ! c\na=b # c", "a = b # c"),
        ("a=b\\", "a = b"), (#"a=b\\"#, #"a = b\"#), ("a==b", "a = =b"), ("a=\"b\" ", "a = \"b\" "),
        ("# c \\\na=b", "a = b"), ("\u{0C}\na=b", "a = b"),
    ])
    func `a property is what Java reads`(text: String, entry: String) {
        #expect(read(text, .properties) == [entry])
    }

    @Test(arguments: [
        (#"a=\u00e"#, "4 hexadecimal digits"), (#"a=\ud83c"#, "surrogate"),
        (#"a=\ud83c\u0041"#, "surrogate"), (#"a=\udf9a"#, "surrogate"),
        ("a=1\na:2", "line 2: the key 'a' is in line 1 already"),
    ])
    func `a property that Java refuses or takes in silence is refused`(text: String, part: String) {
        let found = read(text, .properties)
        #expect(found.count == 1 && found[0].contains(part), "\(found)")
    }

    @Test(arguments: ImportDocument.Format.allCases)
    func `text of another encoding is refused`(format: ImportDocument.Format) throws {
        var document = ImportDocument(Array("a=1\nb=".utf8) + [0xE9], format)
        _ = try document.next()
        let fault = #expect(throws: StateError.self) { try document.next() }
        #expect(fault?.message.contains("iconv -f ISO-8859-1") == true)
        #expect(document.line == 2)
    }

    @Test(arguments: [
        (".env", "env"), ("web.env", "env"), (".env.local", "env"), ("php.ini", "ini"),
        ("a.b.properties", "properties"), ("env", nil), ("ini", nil), ("lines.txt", nil),
        ("app.env.txt", nil), ("a.json", nil), ("-", nil), ("", nil),
    ])
    func `the name of a file says its format only if that is certain`(
        name: String,
        format: String?
    ) {
        #expect(ImportDocument.Format(fileName: Array(name.utf8))?.rawValue == format)
    }
}
