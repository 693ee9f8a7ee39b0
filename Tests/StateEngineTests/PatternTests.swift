import StateEngine
import Testing

@Suite struct PatternTests {
    @Test(arguments: [
        ("a", Pattern.Kind.key, "a"), ("a/b", .key, "a/b"), ("\\FROM", .key, "FROM"),
        ("a\\*", .key, "a*"), ("a/", .prefix, "a/"), ("a*", .glob, "a"), ("*", .glob, ""),
        ("a/?", .glob, "a/"), ("a[bc]/", .glob, "a"), ("a\\*b*", .glob, "a*b"), ("/", .prefix, ""),
        ("a/*/", .glob, "a/"), ("a\\", .key, "a\\"),
    ])
    func `text is read as a key, a prefix or a glob`(
        text: String,
        kind: Pattern.Kind,
        literal: String
    ) throws {
        let pattern = try Pattern(text)
        #expect(pattern.kind == kind)
        #expect(String(decoding: pattern.literal, as: UTF8.self) == literal)
        #expect(pattern.description == text)
    }

    @Test(arguments: ["", "a\u{7}/", "a\u{0}*", "\\/"])
    func `a text that can mean no key is refused`(text: String) {
        #expect(throws: StateError.self) { try Pattern(text) }
    }

    @Test func `a pattern longer than a key is refused`() {
        let text = String(repeating: "k", count: 1_025)
        #expect(throws: StateError.self) { try Pattern(text) }
        #expect(throws: StateError.self) { try Pattern(text + "*") }
    }

    @Test func `a prefix means what is below it and nothing beside it`() throws {
        let test = Pattern("test/")
        #expect(test.matches("test/a"))
        #expect(test.matches("test/a/b"))
        #expect(!test.matches("test"))
        #expect(!test.matches("test2"))
        #expect(!test.matches("test2/a"))
        #expect(Pattern.everything.matches("test"))
        #expect(Pattern("/") == .everything)
    }

    @Test func `a key means itself alone, whatever it looks like`() throws {
        let key = Pattern("a*" as Key)
        #expect(key.matches("a*"))
        #expect(!key.matches("ab"))
        #expect(Pattern("a\\*").matches("a*"))
        #expect(!Pattern("a\\*").matches("ab"))
    }

    @Test(arguments: [
        "a", "a*", "what?", "[", "a]", "back\\", "\\*", "a\\b", "FROM", "\\FROM", "a/*/b",
        String(repeating: "*", count: 1_024),
    ])
    func `what a key's pattern is written as means that key again`(text: String) throws {
        let key = try Key(text)
        let pattern = Pattern(key)
        let read = try pattern.bytes.withUnsafeBytes { try Pattern($0) }
        #expect(read == pattern)
        #expect(read.kind == .key && read.literal == key.bytes)
    }

    @Test func `a glob of Redis knows no prefixes`() {
        let slash = "a/".utf8.map { $0 }.withUnsafeBytes { Pattern(redisGlob: $0) }
        #expect(!slash.matches("a/b"))
        let all = "*".utf8.map { $0 }.withUnsafeBytes { Pattern(redisGlob: $0) }
        #expect(all.matches("a/b"))
    }
}

extension Pattern {
    func matches(_ key: String) -> Bool { Array(key.utf8).withUnsafeBytes { matches($0) } }
}
