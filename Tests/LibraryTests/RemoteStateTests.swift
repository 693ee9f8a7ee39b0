import Glibc
import StateClient
import StateContainers
import StateTestSupport
import Testing

struct RemoteStateTests {
    private let daemon: Daemon
    private let keyspace: RemoteKeyspace

    init() throws {
        daemon = try Daemon()
        keyspace = try RemoteKeyspace(socket: daemon.socketPath)
    }

    private func program(_ arguments: String...) throws -> RunningCommand {
        try RunningCommand(builtProgram("StateTestProgram"), arguments.map { Array($0.utf8) })
    }

    private func statectl(_ arguments: String...) throws -> CommandResult {
        try runCommand(builtProgram("statectl"), ["--socket", daemon.socketPath] + arguments)
    }

    @Test func `One authority: two processes that add 1 leave the sum`() throws {
        let times = Extent.named("STATED_INCREMENTS", short: Extent.rounds(2_000))
        let counters = try (0..<2).map { _ in
            try program("count", daemon.socketPath, "demo/count", "\(times)")
        }
        let answers = try counters.flatMap { try $0.finish().lines }
        #expect(answers.count == 2 * times)
        #expect(Set(answers).count == 2 * times, "two increments have one result")
        let sum = try RemoteState(0, key: "demo/count", in: keyspace)
        #expect(sum.value == 2 * times)
    }

    @Test func `Visible: a live query of the daemon's values shows each write that has returned`()
        async throws
    {
        let state = try await RemoteState(0, key: "q/a", in: keyspace)
        let query = try await keyspace.query("q/", as: Int.self)
        for number in 1...100 {
            try await state ~> number
            #expect(query.rows.map(\.value) == [number])
        }
    }

    @Test(arguments: [
        "demo/*", "what?", "set[1]", #"back\slash"#, #"end\"#, "from", "LIMIT", "Snapshot", "by",
    ])
    func `a key is taken literally, whatever it would mean as a pattern or an option`(
        text: String
    ) throws {
        let key = try Key(text)
        let state = try RemoteState(0, key: key, in: keyspace)
        try state.modify { $0 += 1 }
        #expect(state.value == 1)
        let other = try RemoteKeyspace(socket: daemon.socketPath)
        let seen = try RemoteState(0, key: key, in: other)
        #expect(seen.value == 1)
        // What another process sets is followed.
        #expect(try statectl("set", "--", text, "5").exitCode == 0)
        #expect(state.waits { $0 == 5 } && seen.waits { $0 == 5 })
        #expect(try daemon.connect().value(for: key) == Array("5".utf8))
    }

    @Test func `what two processes add across a crash of the daemon is there, and once`() throws {
        let times = Extent.named("STATED_INCREMENTS", short: Extent.rounds(2_000))
        let counters = try (0..<2).map { _ in
            try program("count", daemon.socketPath, "demo/count", "\(times)")
        }
        var answers: [String] = []
        for line in 1...3 {
            for _ in 0..<times / 10 * line { answers.append(try counters[0].nextLine()) }
            daemon.kill()
            try daemon.start()
        }
        for counter in counters { answers += try counter.finish().lines }
        let sum = try waitUntil { try RemoteState(0, key: "demo/count", in: keyspace) }.value
        let values = answers.filter { $0 != "unknown" }
        #expect(Set(values).count == values.count, "two increments have one result")
        #expect(answers.count == 2 * times)
        #expect((values.count...2 * times).contains(sum))
    }

    @Test func `Convergent: a stream and a listener rest on the value that a writer stopped at`()
        async throws
    {
        let rounds = Extent.named("STATED_ROUNDS", short: 40)
        let state = try await RemoteState(0, key: "demo/count", in: keyspace)
        let told = Observed(0)
        let observation = state.observe(on: .notifier) { change in told.update { $0 = change.new } }
        let streamed = Observed(0)
        let stream = Task(executorPreference: ThreadExecutor()) {
            for await value in state.values { streamed.update { $0 = value } }
        }
        defer { stream.cancel() }
        var random = SplitMix(seed: 3)
        var number = 0
        for round in 0..<rounds {
            let first = number + 1
            number += Int.random(in: 1...20, using: &random)
            if round % 2 == 0 {
                let writer = try program(
                    "set",
                    daemon.socketPath,
                    "demo/count",
                    "\(first)",
                    "\(number)"
                )
                if round % 10 == 4 {
                    daemon.kill()
                    try daemon.start()
                }
                #expect(try writer.finish().exitCode == 0)
            } else {
                #expect(try statectl("set", "demo/count", "\(number)").exitCode == 0)
            }
            let last = number
            #expect(told.wait { $0 == last }, "the listener rests on \(told.current), not \(last)")
            #expect(streamed.wait { $0 == last }, "the stream rests on \(streamed.current)")
            #expect(state.value == last)
        }
        withExtendedLifetime(observation) {}
    }

    @Test func `what statectl sets is seen; what is no number is a failure with the key in it`()
        throws
    {
        let state = try RemoteState(0, key: "demo/count", in: keyspace)
        #expect(try statectl("set", "demo/count", "5").exitCode == 0)
        #expect(state.waits { $0 == 5 })
        let failures = Observed<[StateError]>([])
        let stream = Task(executorPreference: ThreadExecutor()) {
            for await failure in state.failures { failures.update { $0.append(failure) } }
        }
        defer { stream.cancel() }
        #expect(try statectl("set", "demo/count", "five").exitCode == 0)
        #expect(failures.wait { $0.last?.message.contains("demo/count") ?? false })
        #expect(state.value == 5)
        let error = #expect(throws: StateError.self) { try state.modify { $0 += 1 } }
        #expect(error?.code == .undecodable)
        #expect(try statectl("get", "demo/count").text == "five\n")
        try state.replace(6)
        #expect(try statectl("get", "demo/count").text == "6\n")
        #expect(state.value == 6)
        #expect(state.status == .current)
    }

    @Test func `the cause of a change names the process that made it`() throws {
        let state = try RemoteState(0, key: "demo/count", in: keyspace)
        let causes = Observed<[Cause]>([])
        let observation = state.observe(on: .notifier, initial: false) { change in
            causes.update { $0.append(change.cause) }
        }
        let writer = try program("set", daemon.socketPath, "demo/count", "1", "1")
        #expect(try writer.finish().exitCode == 0)
        #expect(causes.wait { !$0.isEmpty })
        #expect(causes.current.first?.pid == writer.pid)
        withExtendedLifetime(observation) {}
    }

    @Test func `a transaction over three containers is whole while another process writes one`()
        throws
    {
        let accounts = try ["a", "b", "c"].map {
            try RemoteState(0, key: Key("account/\($0)"), in: keyspace)
        }
        let writer = try program("transfer", "socket", daemon.socketPath)
        for _ in 0..<100 {
            try withTransaction { tx in
                tx[accounts[0]] += 5
                tx[accounts[2]] -= 5
            }
            let sum = try withTransaction { tx in accounts.reduce(0) { $0 + tx[$1] } }
            #expect(sum == 0)
        }
        _ = try writer.nextLine()
        writer.signal(SIGKILL)
        _ = writer.wait()
        let sum = try withTransaction { tx in accounts.reduce(0) { $0 + tx[$1] } }
        #expect(sum == 0)
        #expect(accounts[0].value >= 500)
    }

    @Test func `while the daemon is away the value is the last one, and a write is refused`() throws
    {
        let state = try RemoteState(0, key: "demo/count", in: keyspace)
        try state ~> 7
        daemon.kill()
        #expect(
            try waitUntil {
                guard case .away = state.status else { throw Away() }
                return true
            }
        )
        #expect(state.value == 7)
        let error = #expect(throws: StateError.self) { try state.modify(8) }
        #expect(error?.code == .unreachable || error?.code == .outcomeUnknown)
        try daemon.start()
        #expect(
            try waitUntil {
                try state.modify {
                    $0 += 1
                    return $0
                }
            } == 8
        )
        #expect(state.status == .current)
        daemon.kill()
        let absent = try RemoteKeyspace(socket: daemon.socketPath)
        #expect(throws: StateError.self) { try RemoteState(0, key: "demo/count", in: absent) }
    }

    @Test func `a daemon that falls silent before the first value is unreachable`() throws {
        let hello = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*1\r\n$12\r\nSTATE.STATUS\r\n"
        let server = try TranscriptServer(
            .receive(hello.utf8.count),
            .send("%1\r\n+proto\r\n:3\r\n%1\r\n$5\r\nepoch\r\n$16\r\n00000000000000ab\r\n"),
            .waitForEnd
        )
        let silent = try RemoteKeyspace(socket: server.path, timeout: .milliseconds(100))
        let error = #expect(throws: StateError.self) {
            try RemoteState(0, key: "demo/count", in: silent)
        }
        #expect(error?.code == .unreachable)
    }

    @Test func `No hidden deadlock: a completion that modifies a container ends the process`()
        async throws
    {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let server = try ServedKeyspace()
            let keyspace = try RemoteKeyspace(socket: server.socketPath)
            let state = try await RemoteState(0, key: "a", in: keyspace)
            let isDone = Observed(false)
            keyspace.submit([.set("b", [])]) { _ in
                _ = try? state.modify(1)
                isDone.update { $0 = true }
            }
            _ = isDone.wait { $0 }
        }
        let words = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(words.contains("must not wait for it"))
    }
}

private struct Away: Error {}

/// Does it until it does not throw, 20 seconds at most.
func waitUntil<R>(_ body: () throws -> R) throws -> R {
    var result: R?
    _ = eventually {
        result = try? body()
        return result != nil
    }
    return try result ?? body()
}

extension State {
    /// Waits until the value is as `condition` says, 20 seconds at most.
    func waits(until condition: (Value) -> Bool) -> Bool {
        eventually { condition(value) }
    }
}
