import Glibc
import StateClient
import StateContainers
import StateEngine
import StateSQLite
import StateServer
import StateTestSupport
import Testing

/// What containers on the daemon are told of the time when nothing was heard of it.
struct RemoteResumeTests {
    private let daemon: Daemon
    private let keyspace: RemoteKeyspace

    init() throws {
        daemon = try Daemon()
        keyspace = try RemoteKeyspace(socket: daemon.socketPath)
    }

    /// Commits to the daemon's store while it does not run.
    private func commitMeanwhile(_ body: (LocalKeyspace) throws -> Void) throws {
        try daemon.stop()
        let store = try LocalKeyspace(backing: SQLiteBacking(directory: daemon.dataPath))
        defer { store.close() }
        try body(store)
    }

    private func collect(
        _ state: RemoteState<Int>
    ) -> (Observed<[StateChange<Int>]>, Task<Void, Never>) {
        let told = Observed<[StateChange<Int>]>([])
        let changes = state.changes()
        let started = Observed(false)
        let task = Task(executorPreference: ThreadExecutor()) {
            var iterator = changes.makeAsyncIterator()
            started.update { $0 = true }
            while let change = await iterator.next() { told.update { $0.append(change) } }
        }
        _ = started.wait { $0 }
        return (told, task)
    }

    private func waitUntilCurrent(_ state: RemoteState<Int>) throws {
        struct Away: Error {}
        try waitUntil { if state.status != .current { throw Away() } }
    }

    @Test func `Resumable: each commit that was missed is told by itself, then all is current`()
        throws
    {
        let state = try RemoteState(0, key: "n", in: keyspace)
        try state.modify(1)
        let (told, task) = collect(state)
        defer { task.cancel() }
        try commitMeanwhile { store in
            for number in 2...40 { try store.apply([.set("n", Array("\(number)".utf8))]) }
            try store.apply([.set("other", [])])
        }
        guard case .away = state.status else {
            Issue.record("the daemon is away, and the container is \(state.status)")
            return
        }
        try daemon.start()
        #expect(told.wait { $0.count == 39 })
        #expect(told.current.map(\.new) == Array(2...40))
        #expect(told.current.map(\.old) == Array(1...39))
        #expect(told.current.allSatisfy { $0.skipped == 0 })
        try waitUntilCurrent(state)
        #expect(state.value == 40)
    }

    @Test func `a container is current again though nothing was committed meanwhile`() throws {
        let state = try RemoteState(0, key: "n", in: keyspace)
        try state.modify(1)
        for round in 0..<3 {
            try commitMeanwhile { store in
                if round == 1 { try store.apply([.set("other", [])]) }
            }
            try daemon.start()
            try waitUntilCurrent(state)
        }
        try state.modify(2)
        #expect(state.value == 2)
    }

    @Test func `a container is current as soon as it is known that it missed nothing`() throws {
        let directory = try TemporaryDirectory()
        let (data, socket) = (directory.path(of: "data"), directory.path(of: "s"))
        struct Present: Error {}
        /// No bookmark becomes due by time.
        func serve() throws -> ServedKeyspace {
            let server = try ServedKeyspace(SQLiteBacking(directory: data)) {
                $0.progressMilliseconds = 3_600_000
            }
            guard symlink(server.socketPath, socket) == 0 else {
                throw SystemFailure(call: "symlink", errno)
            }
            return server
        }
        let server = try serve()
        let state = try RemoteState(0, key: "n", in: RemoteKeyspace(socket: socket))
        try state.modify(1)
        server.stop()
        unlink(socket)
        try waitUntil { if state.status == .current { throw Present() } }
        let store = try LocalKeyspace(backing: SQLiteBacking(directory: data))
        try store.apply([.set("other", [])])
        store.close()
        let again = try serve()
        defer { again.stop() }
        try waitUntilCurrent(state)
        #expect(state.value == 1)
    }

    @Test func `A gap is never silent: changes over another epoch say so`() throws {
        let state = try RemoteState(0, key: "n", in: keyspace)
        try state.modify(1)
        let (told, task) = collect(state)
        defer { task.cancel() }
        let old = keyspace.epoch
        try daemon.stop()
        _ = try runCommand("rm", ["-rf", daemon.dataPath])
        let store = try LocalKeyspace(backing: SQLiteBacking(directory: daemon.dataPath))
        for number in 7...9 { try store.apply([.set("n", Array("\(number)".utf8))]) }
        store.close()
        try daemon.start()
        #expect(told.wait { !$0.isEmpty })
        let change = try #require(told.current.first)
        #expect(change.new == 9 && change.old == 1)
        #expect(change.revision.epoch != old)
        #expect(told.current.count == 1)
    }
}
