import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// The copy of a prefix of a real etcd, brought by the real `stated-etcd`.
final class ClusterTests {
    private let directory: TemporaryDirectory
    private let etcd: EtcdMember
    private let daemon: Daemon
    private var link: pid_t = 0
    private let certificates: String?

    convenience init() throws { try self.init(certificates: nil) }

    private init(
        certificates: String?,
        quotaByteCount: Int? = nil,
        storing option: String = ""
    ) throws {
        self.certificates = certificates
        directory = try TemporaryDirectory()
        etcd = try EtcdMember(certificates: certificates, quotaByteCount: quotaByteCount)
        let text = """
            { cluster: { user: "\(geteuid())", node: "n1" }, limits: { valueBytes: "1KiB" },
              rules: [{ keys: "app/", backing: "cluster"\(option) }, { keys: "app/once/", writeOnce: true },
                      { keys: "app/few/", limits: { keys: 3 } }, { keys: "app/brief/", expire: "1h" },
                      { keys: "app/slow/", limits: { writesPerSecond: 3 } },
                      { keys: "app/typed/", schema: { type: "integer" } }] }
            """
        daemon = try Daemon("--config", try directory.write(Array(text.utf8), to: "stated.json5"))
        try startLink()
    }

    deinit { endLink() }

    private func startLink(at url: String? = nil) throws {
        let log = open(directory.path(of: "link"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        let files =
            certificates.map {
                ["--ca", "\($0)/ca.pem", "--cert", "\($0)/node.pem", "--key", "\($0)/node-key.pem"]
            } ?? []
        link = try spawn(
            builtProgram("stated-etcd"),
            (["--endpoints", url ?? etcd.url, "--socket", daemon.socketPath] + files).map {
                Array($0.utf8)
            },
            [:],
            descriptors: [log, log, log]
        )
    }

    private func endLink() {
        guard link > 0 else { return }
        kill(link, SIGKILL)
        var status: Int32 = 0
        waitpid(link, &status, 0)
        link = 0
    }

    private var log: String {
        (try? readFile(directory.path(of: "link"))).map { String(decoding: $0, as: UTF8.self) }
            ?? ""
    }

    /// The values here.
    private func values() throws -> [String: String] {
        let lines = try Statectl.run(daemon, "list", "app/").text.split(separator: "\n")
        let pairs = lines.map { $0.split(separator: " = ", maxSplits: 1).map(String.init) }
        return Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0[1]) })
    }

    /// Waits until the values here are those of the cluster.
    private func expectSame(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let wanted = try etcd.values("app/")
        let isSame = try eventually { try values() == wanted }
        let text = log
        #expect(isSame, "\(text)\(daemon.log)", sourceLocation: sourceLocation)
    }

    private func status(_ name: String) throws -> String {
        try daemon.connect().status().first { $0.name == name }?.text ?? ""
    }

    private func waitFor(_ state: String) throws {
        #expect(try eventually { try status("cluster").hasPrefix(state) }, "\(log)\(daemon.log)")
    }

    @Test func `a copy follows its cluster, through the ends of link and daemon`() throws {
        try waitFor("current")
        try etcd.put([("app/a", "1"), ("app/b", "2"), ("other", "3")])
        try etcd.put([("app/a", "4"), ("app/c", "5")])
        try etcd.control("del", "app/b")
        try expectSame()
        endLink()
        try etcd.put([("app/a", "6"), ("app/b", "7")])
        try startLink()
        try expectSame()
        for round in 0..<5 {
            for number in 0..<10 { try etcd.put([("app/k\(number)", "\(round)")]) }
            daemon.kill()
            try etcd.put([("app/while", "\(round)")])
            try daemon.start()
        }
        try expectSame()
        // Nothing was compared anew: each commit of the cluster was brought once.
        let log = daemon.log
        #expect(log.split(separator: "\n").count { $0.contains("compared") } == 1, "\(log)")
        let versions = try daemon.connect().entry(for: "app/k3").map(\.version)
        #expect(versions == 5)
    }

    /// What ends the daemon, and whether a change is stored before it is shown.
    enum End: CaseIterable { case kill, failureOfMachine, killOfStoredFirst }

    @Test(arguments: End.allCases)
    func `never silent: a watch that had more than a killed daemon had stored is informed`(
        end: End
    ) throws {
        let option =
            end == .killOfStoredFirst ? "synced\"" : "interval\", commitEvery: \"1h\""
        let test = try ClusterTests(certificates: nil, storing: ", durability: \"\(option)")
        try test.waitFor("current")
        _ = try test.daemon.connect().sync()
        try test.etcd.put([("app/a", "1")])
        try test.expectSame()
        let peer = try Peer(test.daemon.socketPath)
        let shown = try #require(try peer.ask("STATE.GET app/a")["revision"]?.integerValue)
        if end != .failureOfMachine { test.daemon.kill() }
        if end == .failureOfMachine { try failMachine(under: test.daemon) }
        try test.etcd.put([("app/a", "2")])
        try test.daemon.start()
        try test.expectSame()
        let again = try Peer(test.daemon.socketPath)
        let reply = try again.ask("STATE.CHANGES SINCE \(shown) app/")
        let isGap = reply.elements?.first?.textValue == "gap"
        #expect(isGap == (end == .failureOfMachine), "\(reply.shown)")
        // It does not come again.
        if !isGap { #expect(reply.shown.split(separator: "app/a").count == 2, "\(reply.shown)") }
        let history = try Statectl.run(test.daemon, "history", "app/a")
        #expect(history.lines.count == 2, "\(history)")
    }

    @Test func `a history that was compacted or restored is compared`() throws {
        try waitFor("current")
        try etcd.put([("app/a", "1"), ("app/b", "2")])
        try expectSame()
        let snapshot = directory.path(of: "snapshot")
        try etcd.control("snapshot", "save", snapshot)
        try etcd.put([("app/a", "lost")])
        try expectSame()
        endLink()
        try etcd.control("del", "app/b")
        try etcd.put([("app/c", "3")])
        try etcd.control("compact", "\(try etcd.revision())")
        try startLink()
        try expectSame()
        #expect(daemon.log.contains("compacted its history"))
        // The number of the cluster stays, and its revision is beyond that of the copy: only what the
        // link has written there before shows that it is another history.
        endLink()
        try etcd.restore(snapshot)
        for number in 0..<50 { try etcd.put([("app/n\(number)", "x")]) }
        try startLink()
        try expectSame()
        #expect(daemon.log.contains("etcd was restored from a backup"))
        #expect(try values()["app/a"] == "1")
    }

    @Test func `what a client changes is decided in etcd, through the ends of link and daemon`()
        throws
    {
        try waitFor("current")
        #expect(try Statectl.run(daemon, "set", "app/a", "1").exitCode == 0)
        #expect(try etcd.values("app/") == ["app/a": "1"])
        #expect(try Statectl.run(daemon, "incr", "app/n").text == "1\n")
        #expect(try Statectl.run(daemon, "get", "--fresh", "app/n").text == "1\n")
        #expect(try Statectl.run(daemon, "set", "app/a", "2", "--if-absent").exitCode == 4)
        try etcd.put([("app/n", "41")])
        #expect(try Statectl.run(daemon, "incr", "app/n").text == "42\n")
        #expect(try Statectl.run(daemon, "delete", "app/a").exitCode == 0)
        // Each of 60 increments counts once, whatever ends meanwhile.
        let script = """
            for n in {1..60}; do \(builtProgram("statectl")) --socket \(daemon.socketPath) incr app/c \
            >/dev/null 2>&1; echo $?; done
            """
        let counting = try RunningCommand("bash", ["-c", script].map { Array($0.utf8) })
        for _ in 0..<3 {
            usleep(200_000)
            endLink()
            usleep(100_000)
            try startLink()
        }
        let codes = try counting.finish().lines
        let (made, unknown) = (codes.count { $0 == "0" }, codes.count { $0 == "6" })
        let last = try Int(etcd.values("app/")["app/c"] ?? "0") ?? 0
        #expect(codes.count == 60 && made > 0 && made <= last && last <= made + unknown, "\(codes)")
        try expectSame()
    }

    @Test func `a key ends by itself, in etcd, and others may remove its time`() throws {
        try waitFor("current")
        #expect(try Statectl.run(daemon, "set", "app/s", "1", "--ttl", "1s").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "app/t", "1", "--ttl", "2s").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "app/h", "1", "--ttl", "1h").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "app/p", "1", "--ttl", "1h").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "app/brief/k", "1").exitCode == 0)
        #expect(try daemon.connect().entry(for: "app/brief/k")?.expires != nil)
        #expect(try Statectl.run(daemon, "delete", "app/brief/k").exitCode == 0)
        // Its time is the number of a lease, which keys may share.
        let leases = try etcd.control("lease", "list").text.split(separator: "\n").dropFirst()
        #expect((3...5).contains(leases.count), "\(leases)")
        #expect(leases.allSatisfy { $0.hasPrefix("5354") }, "\(leases)")
        endLink()
        daemon.kill()
        try etcd.put([("app/p", "2")])
        try daemon.start()
        #expect(try daemon.connect().entry(for: "app/h").map(\.expires) != nil)
        try startLink()
        try waitFor("current")
        #expect(try eventually { try etcd.values("app/") == ["app/h": "1", "app/p": "2"] })
        try expectSame()
        #expect(try daemon.connect().entry(for: "app/p")?.expires == nil)
        #expect(try daemon.connect().entry(for: "app/h")?.expires != nil)
        let history = try Statectl.run(daemon, "history", "app/s", "--json").text
        #expect(history.contains("expiry"), "\(history)")
    }

    @Test func `an etcd that is full takes no changes, and the copy stays current`() throws {
        try ClusterTests(certificates: nil, quotaByteCount: 3_000_000).fill()
    }

    private func fill() throws {
        try waitFor("current")
        #expect(try Statectl.run(daemon, "set", "app/a", "1").exitCode == 0)
        let value = String(repeating: "x", count: 1 << 20)
        let isFull = try eventually {
            try etcd.control("put", "other", input: value).errorText.contains("space exceeded")
        }
        #expect(isFull)
        let refusal = try Statectl.run(daemon, "set", "app/a", "2")
        #expect(refusal.errorText.contains("NOSPACE etcd: "), "\(refusal)")
        #expect(try status("cluster") == "current")
        // A link that comes then, and has to compare.
        endLink()
        daemon.kill()
        try etcd.control("compact", "\(try etcd.revision())")
        try daemon.start()
        try startLink()
        try waitFor("current")
        #expect(try Statectl.run(daemon, "get", "--fresh", "app/a").exitCode != 0)
        #expect(try Statectl.run(daemon, "get", "app/a").text == "1\n")
        try etcd.control("defrag")
        try etcd.control("alarm", "disarm")
        let isTaken = try eventually { try Statectl.run(daemon, "set", "app/a", "3").exitCode == 0 }
        #expect(isTaken, "\(log)\(daemon.log)")
        try expectSame()
    }

    @Test func `the rules of a machine are for what its clients write`() throws {
        try waitFor("current")
        // Whatever comes at the same time is judged one after the other.
        let statectl = "\(builtProgram("statectl")) --socket \(daemon.socketPath)"
        let script = """
            for n in {1..8}; do (\(statectl) set app/few/$n v >/dev/null 2>&1; echo $?) & done; wait
            """
        let few = try runCommand("bash", ["-c", script])
        #expect(few.lines.count { $0 == "0" } == 3, "\(few)")
        #expect(few.lines.count { $0 == "4" } == 5, "\(few)")
        #expect(try Statectl.run(daemon, "set", "app/once/a", "1").exitCode == 0)
        let second = try Statectl.run(daemon, "set", "app/once/a", "2")
        #expect(second.exitCode == 4 && second.errorText.contains("REJECTED"), "\(second)")
        let typed = try Statectl.run(daemon, "set", "app/typed/a", "x")
        #expect(typed.exitCode == 4 && typed.errorText.contains("REJECTED"), "\(typed)")
        let client = try daemon.connect()
        var made = 0
        for _ in 0..<40 where (try? client.set([0x31], for: Key("app/slow/a"))) != nil { made += 1 }
        #expect(made >= 3 && made < 30, "\(made)")
        // What another machine has decided is here all the same.
        try etcd.put([("app/once/a", "3"), ("app/typed/a", "x"), ("app/few/9", "v")])
        try expectSame()
    }

    @Test func `what came with it, and cannot be here, is not deleted unseen`() throws {
        try waitFor("current")
        for number in 10..<90 { try etcd.put([("app/d/\(number)", "v")]) }
        try etcd.put([("app/d/big", String(repeating: "x", count: 2_000))])
        try expectRefused(1)
        let refused = try Statectl.run(daemon, "delete", "app/d/")
        #expect(refused.errorText.contains("'app/d/big'"), "\(refused)")
        try etcd.control("del", "app/d/big")
        try expectRefused(0)
        #expect(try Statectl.run(daemon, "delete", "app/d/").exitCode == 0)
        #expect(try etcd.values("app/d/").isEmpty)
        try expectSame()
    }

    @Test func `two signatures in one commit, and a text that is none, stop nothing`() throws {
        try waitFor("current")
        try etcd.put([("app/.stated/by/a1", "7"), ("app/.stated/by/b1", "8"), ("app/a", "1")])
        try etcd.put([("app/.stated/by/n1", "nonsense"), ("app/.stated/session/n1", "x")])
        try etcd.put([("app/b", "2")])
        try expectSame()
        #expect(
            eventually { (try? Statectl.run(daemon, "set", "app/c", "3").exitCode) == 0 },
            "\(log)"
        )
        try expectSame()
    }

    @Test func `a link whose session has ended changes nothing any more`() throws {
        try waitFor("current")
        #expect(try Statectl.run(daemon, "set", "app/a", "0").exitCode == 0)
        let first = link
        kill(first, SIGSTOP)
        defer {
            var status: Int32 = 0
            kill(first, SIGKILL)
            waitpid(first, &status, 0)
        }
        // The first one has it, and has not read it.
        let arguments = ["--socket", daemon.socketPath, "set", "app/a", "1"]
        let setting = try RunningCommand(
            builtProgram("statectl"),
            arguments.map { Array($0.utf8) }
        )
        #expect(try eventually { try status("cluster_waiting") == "1" })
        link = 0
        try startLink()
        #expect(try setting.finish().exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "app/a", "2").exitCode == 0)
        let revision = try etcd.revision()
        kill(first, SIGCONT)
        // It has sent its own then, and a beat of the other has come.
        #expect(try eventually { try etcd.revision() > revision + 1 })
        #expect(try etcd.values("app/") == ["app/a": "2"])
        try expectSame()
    }

    @Test func `at most once: what an ended connection had sent changes nothing any more`() throws {
        try waitFor("current")
        endLink()
        let relay = try HeldRelay(to: etcd.client)
        try startLink(at: relay.url)
        try waitFor("current")
        #expect(try Statectl.run(daemon, "set", "app/a", "0").exitCode == 0)
        relay.hold()
        // It is sent, held, and after a while sent again by a new connection.
        #expect(try Statectl.run(daemon, "set", "app/a", "1").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "app/a", "2").exitCode == 0)
        let revision = try etcd.revision()
        relay.release()
        // What was held has come, and then two beats.
        #expect(try eventually { try etcd.revision() > revision + 2 })
        #expect(try etcd.values("app/") == ["app/a": "2"])
        try expectSame()
    }

    @Test func `a copy that is cut off says so, and serves on`() throws {
        try waitFor("current")
        try etcd.put([("app/a", "1")])
        try expectSame()
        etcd.pause()
        try waitFor("away since")
        #expect(try values() == ["app/a": "1"])
        let refused = try Statectl.run(daemon, "set", "app/a", "2")
        #expect(refused.exitCode == 5 && refused.errorText.contains("AWAY"), "\(refused)")
        #expect(try Statectl.run(daemon, "get", "--fresh", "app/a").exitCode == 5)
        #expect(try Statectl.run(daemon, "set", "local", "2").exitCode == 0)
        etcd.goOn()
        try waitFor("current")
        #expect(try Statectl.run(daemon, "set", "app/a", "2").exitCode == 0)
    }

    @Test func `never silent: a member that has lost the others says so`() throws {
        try waitFor("current")
        endLink()
        let members = try EtcdMember.cluster(of: 3)
        try startLink(at: members[0].url)
        try waitFor("current")
        for member in members[1...] { member.pause() }
        #expect(try eventually { try status("cluster").contains("no leader") }, "\(log)")
        try waitFor("away")
        for member in members[1...] { member.goOn() }
        try waitFor("current")
    }

    @Test func `what cannot be here is counted, and left out`() throws {
        try waitFor("current")
        try etcd.put([("app/a", "1"), ("app/big", "small"), ("app/dir/", "x")])
        try expectRefused(1)
        let large = String(repeating: "x", count: 2_000)
        try etcd.put([("app/big", large), ("app/a", "2")])
        try expectRefused(2)
        #expect(try values() == ["app/a": "2"])
        try etcd.put([("app/big", "small again"), ("app/a", "3")])
        try expectRefused(1)
        #expect(try values()["app/big"] == "small")
    }

    private func expectRefused(_ count: Int) throws {
        #expect(try eventually { try status("cluster_refused") == "\(count)" }, "\(log)")
    }

    @Test func `a cluster is reached by TLS, with certificates on both sides`() throws {
        let place = try TemporaryDirectory()
        let made = try runCommand(
            "bash",
            [
                "-c",
                """
                cd \(place.path) && openssl req -x509 -newkey ec -pkeyopt \
                ec_paramgen_curve:P-256 -nodes -keyout ca-key.pem -out ca.pem -subj /CN=ca -days 2 &&
                openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout node-key.pem \
                -out node.csr -subj /CN=n1 && openssl x509 -req -in node.csr -CA ca.pem -CAkey \
                ca-key.pem -CAcreateserial -days 2 -out node.pem -extfile <(echo \
                subjectAltName=IP:127.0.0.1) && openssl req -x509 -newkey ec -pkeyopt \
                ec_paramgen_curve:P-256 -nodes -keyout other-key.pem -out other.pem -subj /CN=other
                """,
            ]
        )
        try #require(made.exitCode == 0, "\(made)")
        let secure = try ClusterTests(certificates: place.path)
        try secure.etcd.put([("app/a", "1")])
        try secure.expectSame()
        // Another authority is not trusted.
        secure.endLink()
        try place.write(readFile(place.path(of: "other.pem")), to: "ca.pem")
        try secure.startLink()
        #expect(eventually { secure.log.contains("certificate of 127.0.0.1") }, "\(secure.log)")
    }
}
