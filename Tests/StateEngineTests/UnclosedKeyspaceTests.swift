import StateEngine
import StateTestSupport
import Testing

/// A keyspace that nobody holds any more closes.
struct UnclosedKeyspaceTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func open() throws -> LocalKeyspace {
        try LocalKeyspace(backing: FileBacking(directory: directory.path))
    }

    @Test func `durable: what was submitted to a keyspace that is let go is stored and answered`()
        throws
    {
        let answers = Observed<[Int64]>([])
        do {
            let keyspace = try open()
            for number in 1...100 {
                keyspace.submit([.set("n", Array("\(number)".utf8))]) { result in
                    if let revision = try? result.get() {
                        answers.update { $0.append(revision) }
                    }
                }
            }
        }
        #expect(answers.current.count == 100)
        #expect(answers.current == answers.current.sorted())
        let again = try open()
        #expect(again.entry(for: "n")?.value == Array("100".utf8))
    }

    @Test func `the last reference to a keyspace may go in an answer`() throws {
        let held = Observed<LocalKeyspace?>(try open())
        held.current?.submit([.set("n", [49])]) { _ in held.update { $0 = nil } }
        #expect(held.wait { $0 == nil })
        // On the commit thread it closes a little later.
        let again = Observed<LocalKeyspace?>(nil)
        #expect(
            eventually {
                again.update { $0 = try? open() }
                return again.current != nil
            }
        )
        #expect(again.current?.entry(for: "n")?.value == [49])
    }

    @Test func `threads that write and let go at once lose no change`() throws {
        for round in 1...50 {
            do {
                let keyspace = try open()
                let keys: [Key] = ["t/0", "t/1", "t/2", "t/3"]
                onThreads(4) { thread in
                    let key = keys[thread]
                    for number in 1...10 {
                        keyspace.submit([.set(key, Array("\(round * number)".utf8))]) { _ in }
                    }
                }
            }
            let again = try open()
            for (_, entry) in again.entries("t/", after: nil, limit: 10) {
                #expect(entry.value == Array("\(round * 10)".utf8))
            }
            #expect(again.keyCount == 4)
        }
    }

    @Test func `a watch keeps its keyspace open`() throws {
        let commits = Observed(0)
        var watch: (any KeyspaceWatch)?
        do {
            let keyspace = try open()
            let begun = keyspace.watch { event in
                if case .commit = event { commits.update { $0 += 1 } }
            }
            begun.include(["n"])
            watch = begun
        }
        #expect(throws: StateError.self) { try open() }
        try #require(watch != nil)
        watch = nil
        #expect(throws: Never.self) { try open() }
    }
}
