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
