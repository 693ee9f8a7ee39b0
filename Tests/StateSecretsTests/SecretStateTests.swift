import Foundation
import Glibc
import StateSQLite
import StateSecrets
import StateTestSupport
import Testing

struct SecretStateTests {
    private struct Account: Codable, Hashable, Sendable {
        var user = "ada"
        @Redacted var password = ""
    }

    private static let text = "correct horse battery staple"
    private let key = SecretKey()
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func contains(_ text: String, _ bytes: [UInt8]) -> Bool {
        let text = Array(text.utf8)
        guard bytes.count >= text.count else { return false }
        return (0...bytes.count - text.count).contains {
            Array(bytes[$0...].prefix(text.count)) == text
        }
    }

    private func bytes(of path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure(call: "open \(path)", errno) }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4 << 20)
        let count = read(descriptor, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }

    @Test func `a secret is read again with its key, and is in no file of the store`() throws {
        let path = directory.path(of: "app.db")
        for run in 1...2 {
            let database = try SQLiteDatabase(path: path)
            let state = try SecretState(
                Secret?.none,
                key: "api/token",
                in: database.keyspace,
                sealedWith: key
            )
            #expect(state.value?.text == (run == 1 ? nil : Self.text))
            try state.set(Secret(Self.text))
            try state.set(Secret("\(Self.text)!"))
            try state.set(Secret(Self.text))
            for suffix in ["", "-wal"] {
                let file = try bytes(of: path + suffix)
                #expect(
                    !contains(Self.text, file)
                        && !contains("Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ", file)
                )
            }
        }
    }

    @Test func `beside a container of the same key, another secret key or none is refused`() throws
    {
        let database = SQLiteDatabase.inMemory
        let keyspace = database.keyspace
        func make(_ key: SecretKey) throws -> SecretState<Account> {
            try SecretState(Account(), key: "account", in: keyspace, sealedWith: key)
        }
        let state = try make(key)
        try state.modify { $0.password = Self.text }
        for error in [
            #expect(throws: StateError.self) { try make(SecretKey()) },
            #expect(throws: StateError.self) {
                try PersistentState(Account(), key: "account", in: keyspace)
            },
        ] {
            #expect(error?.code == .undecodable)
            #expect(error?.message.contains("'account'") == true)
        }
        #expect(try make(key).value.password == Self.text)
        withExtendedLifetime((database, state)) {}
    }

    @Test func `in a file, a secret has mode 0600 and cannot be read`() throws {
        let files = try StateDirectory(path: directory.path(of: "conf"))
        let state = try SecretState(
            Account(),
            key: "account",
            in: files.keyspace,
            sealedWith: key
        )
        try state.modify { $0.password = Self.text }
        let path = directory.path(of: "conf/account")
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try !contains(Self.text, bytes(of: path)))
        #expect(state.value.password == Self.text)
    }

    @Test func `another key, another entry and a changed byte are refused, and the bytes stay`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        func open(_ name: Key, _ key: SecretKey) throws -> SecretState<Secret?> {
            try SecretState(nil, key: name, in: keyspace, sealedWith: key)
        }
        try open("a", key).set(Secret(Self.text))
        let sealed = try #require(keyspace.entry(for: "a")?.value)
        try keyspace.apply([.set("b", sealed)])
        for (name, key) in [("a", SecretKey()), ("b", key)] as [(Key, SecretKey)] {
            let error = #expect(throws: StateError.self) { try open(name, key) }
            #expect(error?.code == .undecodable)
        }
        for place in sealed.indices {
            var changed = sealed
            changed[place] ^= 1
            try keyspace.apply([.set("a", changed)])
            #expect(throws: StateError.self) { try open("a", key) }
            #expect(keyspace.entry(for: "a")?.value == changed)
        }
        for count in 0..<sealed.count {
            try keyspace.apply([.set("a", Array(sealed.prefix(count)))])
            #expect(throws: StateError.self) { try open("a", key) }
        }
    }

    @Test func `a member that becomes secret is read as it was`() throws {
        struct Open: Codable { var born = Date(timeIntervalSinceReferenceDate: 0.5) }
        struct Hidden: Codable { @Redacted var born = Date.distantPast }
        let open = StateCodec<Open>.standard.sealed(with: key, for: "a")
        let hidden = StateCodec<Hidden>.standard.sealed(with: key, for: "a")
        #expect(try hidden.decode(open.encode(Open())).born == Open().born)
        #expect(try open.decode(hidden.encode(Hidden())).born == .distantPast)
    }

    @Test func `no two sealed values are equal`() throws {
        let codec = StateCodec<Int>.standard.sealed(with: key, for: "n")
        let sealed = try (0..<100).map { _ in try codec.encode(5) }
        #expect(Set(sealed).count == 100)
        #expect(try sealed.allSatisfy { try codec.decode($0) == 5 })
    }

    @Test func `a secret is in no description, mirror or error`() throws {
        let secret = Secret(Self.text)
        var account = Account()
        account.password = Self.text
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        let state = try SecretState(account, key: "a", in: keyspace, sealedWith: key)
        try state.set(account)
        var dumped = ""
        dump(account, to: &dumped)
        dump(secret, to: &dumped)
        let shown = [
            "\(secret)", "\(account)", String(reflecting: secret), "\(key)", "\(state)", dumped,
        ]
        #expect(shown.allSatisfy { !$0.contains(Self.text) }, "\(shown)")
        // Of another type: the error of the plain codec would name what it has found.
        let other = StateCodec<Int>.standard.sealed(with: key, for: "a")
        let error = #expect(throws: StateError.self) {
            try other.decode(try #require(keyspace.entry(for: "a")?.value))
        }
        #expect(error?.code == .undecodable && error?.description.contains("ada") == false)
    }

    @Test func `a codec that does not seal refuses secrets`() throws {
        var account = Account()
        account.password = Self.text
        let error = #expect(throws: StateError.self) {
            try StateCodec<Account>.standard.encode(account)
        }
        #expect(error?.description.contains(Self.text) == false)
        #expect(throws: StateError.self) {
            try StateCodec<Secret>.standard.encode(Secret(Self.text))
        }
    }

    @Test func `a key file is made once, and refused if others can read it`() throws {
        let path = directory.path(of: "key")
        let made = try SecretKey.file(path)
        let codec = StateCodec<Int>.standard
        let sealed = try codec.sealed(with: made, for: "n").encode(7)
        #expect(try codec.sealed(with: SecretKey.file(path), for: "n").decode(sealed) == 7)
        #expect(chmod(path, 0o644) == 0)
        let error = #expect(throws: StateError.self) { try SecretKey.file(path) }
        #expect(error?.message.contains("chmod 600") == true)
        try directory.write("short", to: "bad")
        #expect(chmod(directory.path(of: "bad"), 0o600) == 0)
        #expect(throws: StateError.self) { try SecretKey.file(directory.path(of: "bad")) }
        #expect(throws: StateError.self) { try SecretKey(Secret("short")) }
        #expect(throws: StateError.self) { try SecretKey.credential("none") }
    }

    @Test func `secrets compare by their bytes, also in base64`() throws {
        #expect(
            Secret("a") == Secret("a") && Secret("a") != Secret("b") && Secret("") == Secret("")
        )
        let codec = StateCodec<Secret>.standard.sealed(with: key, for: "s")
        for count in 0..<40 {
            let secret = Secret((0..<count).map { UInt8($0 * 7 & 255) })
            #expect(try codec.decode(codec.encode(secret)) == secret)
        }
    }
}
