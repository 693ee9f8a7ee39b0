import Glibc
import StateClient
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// The daemon gone: before, during and after a request.
struct RemoteKeyspaceLossTests {
    private static let hello = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*1\r\n$12\r\nSTATE.STATUS\r\n"
    private static let greeting =
        "%1\r\n+proto\r\n:3\r\n%1\r\n$5\r\nepoch\r\n$16\r\n00000000000000ab\r\n"
    private static let set = "*3\r\n$9\r\nSTATE.SET\r\n$1\r\nk\r\n$1\r\nv\r\n"

    private typealias Answers = Observed<[Result<Int64, StateError>]>

    private static func codes(_ answers: Answers) -> [StateError.Code?] {
        answers.current.map { answer in
            if case .failure(let error) = answer { error.code } else { nil }
        }
    }

    /// One that comes to a daemon by a link, which a test takes away or turns to another daemon, and waits for it.
    private static func patientKeyspace(
        by link: String,
        to daemon: Daemon
    ) throws -> RemoteKeyspace {
        try #require(symlink(daemon.socketPath, link) == 0)
        return try RemoteKeyspace(
            socket: link,
            timeout: .seconds(60),
            whileAway: .wait(upTo: .seconds(60))
        )
    }

    @Test func `a write while nobody serves is refused: nothing was sent`() throws {
        let directory = try TemporaryDirectory()
        let keyspace = try RemoteKeyspace(socket: directory.path(of: "s"))
        for _ in 0..<3 {
            let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [])]) }
            #expect(error?.code == .unreachable)
        }
        let error = #expect(throws: StateError.self) { try keyspace.entry(for: "k") }
        #expect(error?.code == .unreachable)
        #expect(keyspace.epoch.bits == 0)
    }

    @Test func `a write that may wait is sent when the daemon comes, one that may not long is not`()
        throws
    {
        let directory = try TemporaryDirectory()
        let keyspace = try RemoteKeyspace(
            socket: directory.path(of: "s"),
            timeout: .milliseconds(1),
            whileAway: .wait(upTo: .milliseconds(1))
        )
        let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [])]) }
        #expect(error?.code == .unreachable)
        let answers = Answers([])
        keyspace.submit(
            [.set("k", [1])],
            durability: .synced,
            whileAway: .wait(upTo: .seconds(20)),
            timeout: .seconds(20)
        ) { result in answers.update { $0.append(result) } }
        let daemon = try Daemon(directory: directory)
        #expect(answers.wait { !$0.isEmpty })
        #expect(answers.current == [.success(1)])
        #expect(try daemon.connect().value(for: "k") == [1])
    }

    @Test func `a write whose answer is lost has an unknown outcome, one not sent was not`() throws
    {
        let server = try TranscriptServer(
            .receive(Self.hello.utf8.count),
            .send(Self.greeting),
            .receive(Self.set.utf8.count)
        )
        let keyspace = try RemoteKeyspace(socket: server.path)
        let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [0x76])]) }
        #expect(error?.code == .outcomeUnknown)
        #expect(server.finish() == Self.hello + Self.set)
        // Others may connect, and nobody answers them: what is not sent in time was not sent.
        let brief = try RemoteKeyspace(socket: server.path, timeout: .milliseconds(20))
        let next = #expect(throws: StateError.self) { try brief.apply([.set("k", [0x76])]) }
        #expect(next?.code == .unreachable)
        #expect(keyspace.epoch == Epoch(bits: 0xAB))
    }

    @Test func `a write that is not answered in time has an unknown outcome, and others go on`()
        throws
    {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let keyspace = try RemoteKeyspace(socket: server.socketPath, timeout: .milliseconds(50))
        let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [])]) }
        #expect(error?.code == .outcomeUnknown)
        let read = #expect(throws: StateError.self) { try keyspace.entry(for: "k") }
        #expect(read?.code == .unreachable)
        backing.open()
        let patient = Answers([])
        keyspace.submit([.set("l", [])], durability: .synced, timeout: .seconds(20)) { result in
            patient.update { $0.append(result) }
        }
        #expect(patient.wait { $0 == [.success(2)] })
    }

    @Test func `requests beyond the limit are refused`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let keyspace = try RemoteKeyspace(socket: server.socketPath, timeout: .seconds(60))
        let answers = Answers([])
        for _ in 0..<65_540 {
            keyspace.submit([.set("k", [])]) { result in answers.update { $0.append(result) } }
        }
        #expect(Self.codes(answers) == [.limit, .limit, .limit, .limit])
        backing.open()
        #expect(answers.wait(seconds: 60) { $0.count == 65_540 })
        try keyspace.apply([.set("k", [])])
        let large = (0..<17).map { _ in Mutation.set("k", [UInt8](repeating: 0, count: 8 << 20)) }
        let error = #expect(throws: StateError.self) { try keyspace.apply(large) }
        #expect(error?.code == .tooBig)
    }

    @Test func `closing fails what waits and what comes, and tells the watches`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        #expect(recorder.waits { $0.revision != nil })
        let answers = Answers([])
        keyspace.submit([.set("k", [])]) { result in answers.update { $0.append(result) } }
        #expect(backing.held() != nil)
        keyspace.close()
        keyspace.submit([.set("k", [])]) { result in answers.update { $0.append(result) } }
        #expect(Self.codes(answers) == [.outcomeUnknown, .unreachable])
        #expect(recorder.shown == ["state 0 of /: ", "away"])
        let late = keyspace.watch(recorder.take)
        late.include([.everything])
        #expect(recorder.told.current.isAway)
        keyspace.close()
        backing.open()
        try server.waitForClients(0)
    }

    @Test func `what answers is no daemon`() throws {
        let server = try TranscriptServer(.send("HTTP/1.1 400 Bad Request\r\n\r\n"), .waitForEnd)
        let keyspace = try RemoteKeyspace(socket: server.path)
        let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [])]) }
        #expect(error?.code == .unreachable)
    }

    @Test func `a watch hears once that the daemon is away, and then the whole state`() throws {
        let daemon = try Daemon()
        let keyspace = try RemoteKeyspace(socket: daemon.socketPath)
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include(["a", "b"])
        #expect(recorder.waits { $0.revision != nil })
        try keyspace.apply([.set("a", [0x31]), .set("b", [0x31])])
        let epoch = recorder.told.current.revision?.epoch
        for round in 2...6 {
            daemon.kill()
            #expect(recorder.waits { $0.isAway })
            try daemon.start()
            let writer = try daemon.connect()
            try writer.set(Array(text: round), for: "a")
            #expect(recorder.waits { !$0.isAway && $0.values == ["a": "\(round)", "b": "1"] })
        }
        #expect(recorder.told.current.revision?.epoch == epoch)
        #expect(recorder.told.current.faults == [])
    }

    @Test func `Visible: after a reconnect too the watch tells of a commit before its answer`()
        throws
    {
        let daemon = try Daemon()
        let keyspace = try RemoteKeyspace(
            socket: daemon.socketPath,
            whileAway: .wait(upTo: .seconds(20))
        )
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        // More than one piece of a snapshot.
        let filling = [UInt8](repeating: 0x78, count: 1_000)
        try keyspace.apply((0..<2_000).map { .set(try Key("k\($0)"), filling) })
        for round in 1...5 {
            daemon.kill()
            #expect(recorder.waits { $0.isAway })
            let seen = Observed<[String?]>([])
            keyspace.submit([.set("mine", Array(text: round))]) { _ in
                let value = recorder.told.current.values["mine"]
                seen.update { $0.append(value) }
            }
            try daemon.start()
            #expect(seen.wait { !$0.isEmpty })
            #expect(seen.current == ["\(round)"])
        }
        #expect(recorder.told.current.faults == [])
    }

    @Test func `Visible: so does one that goes on from the history, while it catches up`() throws {
        let daemon = try Daemon()
        let directory = try TemporaryDirectory()
        let socket = directory.path(of: "s")
        let keyspace = try Self.patientKeyspace(by: socket, to: daemon)
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        try keyspace.apply([.set("k", [])])
        #expect(recorder.waits { $0.values == ["k": ""] })
        for round in 1...3 {
            // It cannot come back while another client writes.
            unlink(socket)
            daemon.kill()
            #expect(recorder.waits { $0.isAway })
            try daemon.start()
            let writer = try RemoteKeyspace(socket: daemon.socketPath)
            for _ in 0..<20 {
                try writer.apply((0..<1_000).map { .set(try Key("k\($0)"), Array(text: round)) })
            }
            let seen = Observed<[String?]>([])
            for _ in 0..<3 {
                keyspace.submit([.set("mine", Array(text: round))]) { _ in
                    let value = recorder.told.current.values["mine"]
                    seen.update { $0.append(value) }
                }
            }
            try #require(symlink(daemon.socketPath, socket) == 0)
            #expect(seen.wait { $0.count == 3 })
            #expect(seen.current == ["\(round)", "\(round)", "\(round)"])
        }
        #expect(recorder.told.current.faults == [])
    }

    @Test func `Visible: a store with lower revisions is told before a write to it is answered`()
        throws
    {
        let (old, new) = (try Daemon(), try Daemon())
        let filling = [UInt8](repeating: 0x78, count: 1_000)
        let writer = try RemoteKeyspace(socket: new.socketPath)
        try writer.apply((0..<4_000).map { .set(try Key("k\($0)"), filling) })
        let directory = try TemporaryDirectory()
        let socket = directory.path(of: "s")
        let keyspace = try Self.patientKeyspace(by: socket, to: old)
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        for number in 0..<20 { try keyspace.apply([.set("old", Array(text: number))]) }
        #expect(recorder.waits { $0.values == ["old": "19"] })
        unlink(socket)
        old.kill()
        #expect(recorder.waits { $0.isAway })
        let seen = Observed<[String?]>([])
        keyspace.submit([.set("mine", [0x31])]) { _ in
            let value = recorder.told.current.values["mine"]
            seen.update { $0.append(value) }
        }
        try #require(symlink(new.socketPath, socket) == 0)
        #expect(seen.wait { !$0.isEmpty })
        #expect(seen.current == ["1"])
        #expect(recorder.told.current.values["old"] == nil)
    }

    @Test func `an answer before storage waits for no watch, which may never tell of it`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        try server.exchangeRules(
            KeyRules(["fast/"], memoryPatterns: [], usages: [], texts: NoTexts()) { _ in
                var settings = KeyRule.Settings()
                settings.durability = KeyRule.Setting(value: .memory, rule: 0)
                return KeyRule(settings, quotas: [])
            }
        )
        let keyspace = try RemoteKeyspace(socket: server.socketPath, timeout: .seconds(60))
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        #expect(recorder.waits { $0.revision != nil })
        let answers = Answers([])
        keyspace.submit([.set("fast/a", [1])]) { result in answers.update { $0.append(result) } }
        #expect(answers.wait { !$0.isEmpty })
        #expect(answers.current == [.success(1)])
        // Several are one commit, which is stored.
        keyspace.submit([.set("fast/a", [2]), .set("fast/b", [2])]) { result in
            answers.update { $0.append(result) }
        }
        keyspace.submit([.set("other", [3])]) { result in answers.update { $0.append(result) } }
        try server.catchUp()
        #expect(answers.current.count == 1)
        backing.open()
        #expect(answers.wait { $0.count == 3 })
        #expect(answers.current.dropFirst() == [.success(2), .success(3)])
        #expect(recorder.told.current.faults == [])
    }

    @Test func `who includes something while the daemon is away is told so`() throws {
        let directory = try TemporaryDirectory()
        let keyspace = try RemoteKeyspace(socket: directory.path(of: "s"))
        let events = Observed<[String]>([])
        let watch = keyspace.watch { event in events.update { $0.append(event.shown) } }
        watch.include(["a"])
        #expect(events.wait { !$0.isEmpty })
        let count = events.current.count
        watch.include(["b"])
        #expect(events.wait { $0.count > count })
        let daemon = try Daemon(directory: directory)
        #expect(events.wait { $0.last == "state 0 of a b: " })
        _ = daemon
    }

    @Test func `Convergent: another epoch is a new beginning, told once`() throws {
        let directory = try TemporaryDirectory()
        let daemon = try Daemon(directory: directory)
        let keyspace = try RemoteKeyspace(socket: daemon.socketPath)
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        #expect(recorder.waits { $0.revision != nil })
        try keyspace.apply([.set("k", [0x31])])
        try keyspace.apply([.set("k", [0x32])])
        let old = try #require(recorder.told.current.revision)
        try daemon.stop()
        _ = try runCommand("rm", ["-rf", daemon.dataPath])
        try daemon.start()
        #expect(recorder.waits { $0.values.isEmpty })
        let new = try #require(recorder.told.current.revision)
        #expect(new.epoch != old.epoch && new.number == 0)
        #expect(keyspace.epoch == new.epoch)
        #expect(recorder.shown.suffix(2) == ["away", "state 0 of /: "])
    }

    @Test func `increments over a crash: acknowledged ≤ sum ≤ acknowledged + unknown`() throws {
        let daemon = try Daemon()
        let keyspace = try RemoteKeyspace(
            socket: daemon.socketPath,
            whileAway: .wait(upTo: .seconds(20))
        )
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include(["n"])
        #expect(recorder.waits { $0.revision != nil })
        let workers = InThreads(4) { _ in try Counter(keyspace, "n").increment(times: 500) }
        for share in [400, 900, 1_500] {
            #expect(recorder.waits { Int($0.values["n"] ?? "0") ?? 0 >= share })
            daemon.kill()
            try daemon.start()
        }
        var revisions: [Int64] = []
        var unknownCount = 0
        for outcome in try workers.results() {
            revisions += outcome.revisions
            unknownCount += outcome.unknownCount
        }
        let bytes = try #require(try keyspace.entry(for: "n")).value
        let sum = try #require(Int(String(decoding: bytes, as: UTF8.self)))
        #expect(revisions.count <= sum && sum <= revisions.count + unknownCount)
        #expect(Set(revisions).count == revisions.count)
        #expect(revisions.count + unknownCount == 2_000)
        #expect(recorder.waits { $0.values["n"] == "\(sum)" })
        #expect(recorder.told.current.faults == [])
    }
}
