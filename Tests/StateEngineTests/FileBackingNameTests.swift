import StateEngine
import StateTestSupport
import Testing

/// Which file is a key's, and which key a file's.
struct FileBackingNameTests {
    @Test(arguments: [
        ("audio/volume", "audio/volume"), ("100%", "100%25"), ("../x", "%2E%2E/x"), (".", "%2E"),
        ("a/../b", "a/%2E%2E/b"), ("...", "%2E.."), (".git/config", "%2Egit/config"),
        ("a//b", "a/%2Fb"), ("/", nil), ("/a", "%2Fa"), ("a///.b", "a/%2F%2F%2Eb"),
        (".lock", "%2Elock"), ("a~b", "a~b"), ("größe", "größe"), ("a b", "a b"), ("%41", "%2541"),
    ])
    func `a key is the file of this name`(key: String, name: String?) throws {
        guard let name else {
            #expect(throws: StateError.self) { try Key(key) }
            return
        }
        #expect(try FileName.path(of: Key(key)) == FilePath(name))
        #expect(FileName.key(of: FilePath(name)) == (try Key(key)))
    }

    @Test(arguments: [
        "notes~", "a~/b", "a.lock", "x/index.lock", "x//~", String(repeating: "x", count: 256),
        String(repeating: "%", count: 86), "a/" + String(repeating: "ä", count: 128),
    ])
    func `a key that is no name is refused by name`(key: String) throws {
        let error = try #require(throws: StateError.self) { try FileName.path(of: Key(key)) }
        #expect(error.code == .rejected)
        #expect(error.message.contains(key.prefix(20)))
    }

    @Test(arguments: [
        ".hidden", "a~", "a.lock", "%41", "%2f", "a//b", "a%2Fb", "%", "%2", "a/", "%2F", "a/.b",
        "",
        "%0A", "%FF", "%2E%2E%2E", "%2Ea%2E",
    ])
    func `a file with another name is no key`(name: String) {
        #expect(FileName.key(of: FilePath(name)) == nil)
    }

    @Test(arguments: Seed.each(8))
    func `names are one to one for every key that is accepted`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let parts = ["a", "b", ".", "..", "%", "/", "//", "~", ".lock", "2E", "2F", "ö", " ", "-"]
        var keys: [FilePath: Key] = [:]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 1...7, using: &random)).map { _ in
                parts.randomElement(using: &random) ?? ""
            }
            .joined()
            guard let key = try? Key(text), let path = try? FileName.path(of: key) else { continue }
            #expect(FileName.key(of: path) == key)
            #expect(keys.updateValue(key, forKey: path) ?? key == key, "\(path)")
            for name in path.bytes.split(
                separator: UInt8(ascii: "/"),
                omittingEmptySubsequences: false
            ) {
                #expect(!name.isEmpty && name.first != UInt8(ascii: ".") && name.count <= 255)
            }
        }
        #expect(keys.count > 1_000)
    }

    @Test(arguments: Seed.each(8))
    func `of all names only one is a key's`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let parts = ["a", "%2E", "%2F", "%25", "%", "2", "E", ".", "/", "~", "%61", "%2e", "ö"]
        var count = 0
        for _ in 0..<20_000 {
            let name = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                parts.randomElement(using: &random) ?? ""
            }
            .joined()
            guard let key = FileName.key(of: FilePath(name)) else { continue }
            count += 1
            #expect(try FileName.path(of: key) == FilePath(name))
        }
        #expect(count > 100)
    }
}
