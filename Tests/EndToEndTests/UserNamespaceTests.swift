import Glibc
import StateServer
import StateTestSupport
import Testing

extension UserNamespace {
    fileprivate static let canBeMade =
        (try? runCommand("unshare", ["--user", "--map-root-user", "true"]).exitCode) == 0
}

/// A daemon in a user namespace that maps only its own user, as in a rootless container.
@Suite(
    .enabled(
        if: TestUser.areThere && UserNamespace.canBeMade,
        "only root can connect as other users, and the kernel must allow user namespaces"
    )
)
struct UserNamespaceTests {
    private let daemon: Daemon
    private let (a, b): (TestUser, TestUser)

    init() throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let rules = """
            { socket: { mode: "0666" }, rules: [
              { keys: "own/", read: ["owner"], write: ["owner"], create: ["*"] },
              { keys: "drop/", read: ["owner"] },
              { keys: "nobody/", read: [65534], write: [65534] },
              { keys: "group/", read: ["group:65534"] },
              { keys: "wheel/", read: ["group:0"] },
              { keys: "/", admin: [65534, "owner"] },
            ] }
            """
        let file = try directory.write(rules, to: "stated.json5")
        daemon = try Daemon(
            ["--config", file],
            directory: directory,
            launcher: ["unshare", "--user", "--map-root-user"]
        )
        a = try #require(TestUser(TestUser.names[0]))
        b = try #require(TestUser(TestUser.names[1]))
    }

    @Test(arguments: ["nobody/key", "group/key", "drop/key"])
    func `what one unmapped user stores no other one reads`(key: String) throws {
        try AccessConnection(nil, daemon, version: 2).exchange([["SET", key, "token"]])
        let first = try AccessConnection(a, daemon, version: 2)
        try first.exchange([["SET", "drop/key", "token"]])
        let second = try AccessConnection(b, daemon, version: 2)
        let seen = try second.exchange([
            ["GET", key], ["MGET", "free", key], ["STATE.LIST", "/"],
        ])
        #expect(!seen.contains("token"), "\(seen)")
    }

    @Test func `an unmapped user owns nothing, and the refusal says why`() throws {
        let peer = try AccessConnection(a, daemon, version: 2)
        let refused = try peer.exchange([["SET", "own/key", "1"]])
        let expected =
            "-NOPERM key 'own/key': uid 65534, which is no user: this user namespace does not map who "
            + "connected, may not write it (rule 1, line 2, write)"
        #expect(refused.contains(expected), "\(refused)")
        let root = try AccessConnection(nil, daemon, version: 2)
        #expect(try root.exchange([["SET", "own/key", "1"]]).contains("+OK"))
        #expect(try peer.exchange([["GET", "own/key"]]).contains("-NOPERM"))
        // What everybody may do, they may.
        #expect(try peer.exchange([["SET", "free", "1"], ["GET", "free"]]).contains("$1\r\n1"))
    }

    @Test(arguments: [
        ["STATE.RELOAD"], ["STATE.HANDLER", "ATTACH", "name", "SNAPSHOT", "/"],
        ["STATE.CLAIM", "0000fffe00000000"], ["FLUSHALL"],
    ])
    func `an unmapped user has no rights that belong to a user`(command: [String]) throws {
        let refused = try AccessConnection(a, daemon, version: 3).exchange([command])
        #expect(refused.contains("-NOPERM") || refused.contains("-ERR"), "\(refused)")
        #expect(!refused.contains("-ERR syntax"))
    }

    @Test func `unmapped users do not see each other's connections and handlers`() throws {
        let first = try AccessConnection(a, daemon, version: 3)
        try first.exchange([["CLIENT", "SETNAME", "first"], ["STATE.WATCH", "free/token"]])
        let second = try AccessConnection(b, daemon, version: 3)
        let seen = try second.exchange([["CLIENT", "LIST"], ["STATE.WATCHES"], ["STATE.HANDLERS"]])
        #expect(!seen.contains("first") && !seen.contains("token"), "\(seen)")
    }

    @Test func `nobody learns what rules hide by a mapped group of an unmapped user`() throws {
        let root = try AccessConnection(nil, daemon, version: 2)
        #expect(try root.exchange([["SET", "wheel/key", "token"]]).contains("+OK"))
        let peer = try AccessConnection(TestUser(uid: a.uid, gid: 0), daemon, version: 2)
        #expect(try !peer.exchange([["GET", "wheel/key"]]).contains("token"))
    }

    @Test(arguments: [
        ("         0          0 4294967295\n", true), ("0 1000 1\n1 100000 65536\n", false),
        ("0 0 65534\n65534 65534 4294901761\n", true), ("", false), ("0 0 1\n", false),
    ])
    func `a map is whole if it has all numbers`(map: String, isWhole: Bool) {
        #expect(UserNamespace.isWhole(map: map) == isWhole)
    }
}
