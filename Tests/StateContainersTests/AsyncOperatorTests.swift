import StateContainers
import StateTestSupport
import Testing

struct AsyncOperatorTests {
    @Test func `No hidden deadlock: a change by operator leaves the thread of its task to others`()
        async throws
    {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        let state = try await PersistentState(0, key: "a", in: keyspace, codec: digits)
        backing.hold()
        let thread = ThreadExecutor()
        let writer = Task(executorPreference: thread) { () -> Int in
            try await state ~> 1
            return try await state ~> { value -> Int in
                value += 1
                return value
            }
        }
        // Only if the one thread is free while the first commit waits.
        let release = Task(executorPreference: thread) { backing.release(2) }
        await release.value
        #expect(try await writer.value == 2)
        #expect(state.value == 2)
    }

    @Test func `a change of a task that is cancelled is made all the same`() async throws {
        let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
        let state = try await PersistentState(0, key: "a", in: keyspace, codec: digits)
        let writer = Task { () -> Int in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await state ~> { value -> Int in
                value += 1
                // While the change is made, too.
                withUnsafeCurrentTask { $0?.cancel() }
                return value
            }
        }
        #expect(try await writer.value == 1 && writer.isCancelled)
        #expect(state.value == 1)
    }

    @Test func `a container in memory needs no await in a task`() async {
        let state = State(0, key: "a")
        state ~> 1
        state ~> { $0 += 1 }
        #expect(state.value == 2)
    }
}
