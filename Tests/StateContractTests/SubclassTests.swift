import StateClient
import StateContainers
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Subclasses of the stored containers, as a program makes them for analytics or sync.
struct SubclassTests {
    private protocol Recording: AnyObject, Sendable {
        var seen: Observed<[Int]> { get }
    }

    private final class Database: SQLiteState<Int>, Recording, @unchecked Sendable {
        let seen = Observed<[Int]>([])
        override func didModify(_ change: StateChange<Int>) {
            super.didModify(change)
            seen.update { $0.append(change.new) }
        }
    }

    private final class File: FileState<Int>, Recording, @unchecked Sendable {
        let seen = Observed<[Int]>([])
        override func didModify(_ change: StateChange<Int>) {
            super.didModify(change)
            seen.update { $0.append(change.new) }
        }
    }

    private final class Other: PersistentState<Int>, Recording, @unchecked Sendable {
        let seen = Observed<[Int]>([])
        override func didModify(_ change: StateChange<Int>) {
            super.didModify(change)
            seen.update { $0.append(change.new) }
        }
    }

    private func expectEach<Container: PersistentState<Int> & Recording>(
        of state: Container,
        beside another: PersistentState<Int>
    ) throws {
        let listened = Observed(0)
        let observation = state.observe(initial: false) { _ in listened.update { $0 += 1 } }
        for number in 1...50 { try (number.isMultiple(of: 2) ? state : another) ~> number }
        #expect(state.seen.wait { $0.count >= 50 })
        #expect(state.seen.current == Array(1...50))
        #expect(listened.wait { $0 > 0 })
        observation.cancel()
        // Not only as long as it has observers.
        try another ~> 51
        #expect(state.seen.wait { $0.last == 51 })
        try withTransaction { tx in tx[state] += 1 }
        #expect(state.seen.wait { $0 == Array(1...52) })
    }

    @Test func `Ordered: didModify of a subclass of SQLiteState is called once for each change`()
        throws
    {
        let database = SQLiteDatabase.inMemory
        try expectEach(
            of: Database(0, key: "n", in: database),
            beside: SQLiteState(0, key: "n", in: database)
        )
    }

    @Test func `Ordered: didModify of a subclass of FileState is called once for each change`()
        throws
    {
        let directory = try TemporaryDirectory()
        let files = try StateDirectory(path: directory.path)
        let state = try File(0, key: "n", in: files)
        try expectEach(of: state, beside: FileState(0, key: "n", in: files))
        _ = try runCommand("sh", ["-c", "echo 77 > \(directory.path)/n"])
        #expect(state.seen.wait { $0.last == 77 })
    }

    @Test
    func `Ordered: didModify of a subclass of PersistentState is called once for each change`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        try expectEach(
            of: Other(0, key: "n", in: keyspace),
            beside: PersistentState(0, key: "n", in: keyspace)
        )
    }
}
