import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Damage that happens while a daemon runs.
struct RunningDamageTests {
    /// What is done to the database, and what is left of it then.
    enum Damage: CaseIterable {
        case zeroedPage, cut

        func happen(to path: String) throws {
            let size = Int(try readFile(path).count)
            switch self {
            case .zeroedPage:
                let descriptor = open(path, O_WRONLY | O_CLOEXEC)
                try #require(descriptor >= 0)
                defer { close(descriptor) }
                let zeros = [UInt8](repeating: 0, count: 8_192)
                let place = size / 2 / zeros.count * zeros.count
                #expect(pwrite(descriptor, zeros, zeros.count, off_t(place)) == zeros.count)
            case .cut: #expect(truncate(path, off_t(size / 2 / 8_192 * 8_192)) == 0)
            }
        }
    }

    private func filledDaemon(_ limits: String) throws -> Daemon {
        let directory = try TemporaryDirectory()
        let path = try directory.write("{ limits: { \(limits) } }", to: "c.json5")
        let daemon = try Daemon(["--config", path], directory: directory)
        let client = try daemon.connect()
        let value = [UInt8](repeating: 0x76, count: 1_000)
        for hundred in 0..<20 {
            try client.set(
                (0..<100).map { (key: try Key("k/\(hundred * 100 + $0)"), value: value) }
            )
        }
        // Then it is in the database, and not in the log.
        try daemon.stop()
        try daemon.start()
        return daemon
    }

    private func store(_ daemon: Daemon) throws -> String {
        let status = try daemon.connect().status()
        return try #require(status.first { $0.name == "store" }).text
    }

    @Test(arguments: Damage.allCases)
    func `never silent about storage: a check names damage under a running daemon`(
        damage: Damage
    ) throws {
        let daemon = try filledDaemon("checkEvery: '200ms'")
        #expect(try store(daemon) == "ok")
        try damage.happen(to: daemon.dataPath + "/stated.db")
        #expect(try eventually { try store(daemon).contains("stated.db is damaged") })
        #expect(eventually { daemon.log.contains("the values in memory are still served") })
        #expect(try daemon.connect().count(of: "k/") == 2_000)
        daemon.kill()
    }

    @Test(.enabled(if: TestUser.areThere, "it takes root, and other users"))
    func `nobody learns what rules hide: damage names keys to those who may read all only`() throws
    {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let path = try directory.write(
            "{ socket: { mode: '0666' }, limits: { checkEvery: '200ms' }, rules: [{ keys: 'k/', read: ['root'] }] }",
            to: "c.json5"
        )
        let daemon = try Daemon(["--config", path], directory: directory)
        try daemon.connect().set(Array("a value to find".utf8), for: "k/secret")
        try daemon.restart()
        var bytes = try readFile(daemon.dataPath + "/stated.db")
        let value = Array("a value to find".utf8)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: value) })
        bytes[place] ^= 0x20
        try write(bytes, to: daemon.dataPath + "/stated.db")
        #expect(try eventually { try store(daemon).contains("k/secret") })
        let user = try #require(TestUser(TestUser.names[1]))
        let socket = try user.connect(to: daemon.socketPath)
        try socket.send("STATE.STATUS\r\nPING\r\n")
        var answer = ""
        while !answer.hasSuffix("+PONG\r\n"), let more = try socket.receive() {
            answer += String(decoding: more, as: UTF8.self)
        }
        #expect(answer.contains("a problem that the log of the daemon names"), "\(answer)")
        #expect(!answer.contains("secret"))
        daemon.kill()
    }

    @Test func `never silent about storage: a read that meets damage says so in the status`()
        throws
    {
        let daemon = try filledDaemon("checkEvery: 0")
        // It has read everything once it answers.
        #expect(try store(daemon) == "ok")
        try Damage.zeroedPage.happen(to: daemon.dataPath + "/log/1.log")
        let read = try Statectl.run(daemon, "list", "k/", "--at", "1")
        #expect(read.exitCode != 0 && read.errorText.contains("damaged"), "\(read)")
        #expect(try store(daemon).contains("the log is damaged"))
        daemon.kill()
    }
}
