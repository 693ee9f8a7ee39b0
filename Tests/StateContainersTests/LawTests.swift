import CLinux
import Glibc
import StateContainers
import StateEngine
import StateTestSupport
import Testing

/// The laws of the containers, by name.
@Suite(.serialized)
struct LawTests {
    /// A container that keeps what its `didModify` took.
    final class Kept: MonitoredState<Int>, @unchecked Sendable {
        let told = Told<Int>()
        private let isAtWork = StateLock(false)
        let overlapCount = StateLock(0)
        private let followUp: @Sendable (Kept, StateChange<Int>) -> Void

        init(_ followUp: @escaping @Sendable (Kept, StateChange<Int>) -> Void = { _, _ in }) {
            self.followUp = followUp
            super.init(0, key: "kept")
        }

        override func didModify(_ change: StateChange<Int>) {
            isAtWork.withLock { isAtWork in
                if isAtWork { overlapCount.withLock { $0 += 1 } }
                isAtWork = true
            }
            defer { isAtWork.withLock { $0 = false } }
            told.take(change)
            followUp(self, change)
            super.didModify(change)
        }
    }

    @Test func `Visible: every thread reads a change when modify returned and when it is told`() {
        let state = MonitoredState(0, key: "a")
        let stale = StateLock(0)
        let observation = state.observe(on: .inline) { change in
            if state.value < change.new { stale.withLock { $0 += 1 } }
        }
        onThreads(4) { _ in
            for _ in 0..<1_000 {
                let mine = state.modify { value in
                    value += 1
                    return value
                }
                if state.value < mine { stale.withLock { $0 += 1 } }
            }
        }
        #expect(state.value == 4_000)
        #expect(stale.withLock { $0 } == 0)
        observation.cancel()
    }

    @Test func `Atomic: modify is one step, with and without a listener`() {
        let state = MonitoredState(0, key: "a")
        onThreads(4) { number in
            var observation: StateObservation?
            for round in 0..<10_000 {
                // Registered and not, in turn, while the others add.
                if number == 0, round % 100 == 0 {
                    observation?.cancel()
                    observation = round % 200 == 0 ? state.observe { _ in } : nil
                }
                state ~> { $0 += 1 }
            }
        }
        #expect(state.value == 40_000)
    }

    @Test func `Ordered: didModify runs once for each change, ascending, never overlapping`() {
        let state = Kept()
        onThreads(4) { _ in
            for _ in 0..<1_000 { state ~> { $0 += 1 } }
        }
        #expect(state.told.changes.wait { $0.count == 4_000 })
        #expect(state.told.isChain)
        #expect(state.told.changes.current.allSatisfy { $0.skipped == 0 })
        #expect(state.overlapCount.withLock { $0 } == 0)
    }

    @Test func `Ordered: a writer tells of 64 changes at most, then the notifier does`() {
        let gate = Gate()
        let tellers = Observed<[pthread_t]>([])
        let state = Kept { _, _ in
            gate.pass()
            tellers.update { $0.append(pthread_self()) }
        }
        let writer = WorkerThread(name: "test-writer")
        writer.start { state ~> { $0 += 1 } }
        #expect(gate.isReached())
        for _ in 1..<200 { state ~> { $0 += 1 } }
        gate.open()
        #expect(tellers.wait { $0.count == 200 })
        let byWriter = tellers.current.prefix { $0 == tellers.current[0] }
        #expect(byWriter.count == 64)
        #expect(tellers.current.dropFirst(64).allSatisfy { $0 != byWriter[0] })
        writer.join()
        #expect(state.told.isChain)
    }

    @Test func `Re-entrant: modify in didModify commits at once and is told afterwards`() {
        let read = StateLock<[Int]>([])
        let state = Kept { state, change in
            guard change.new == 1 else { return }
            state ~> 2
            read.withLock { $0 = [state.value, state.told.changes.current.count] }
        }
        state ~> 1
        #expect(read.withLock { $0 } == [2, 1])
        #expect(state.told.changes.current.map(\.new) == [1, 2])
        #expect(state.overlapCount.withLock { $0 } == 0)
    }

    @Test(arguments: [true, false])
    func `Re-entrant: 1,000 self-caused changes in a row, and the next throws`(
        isInline: Bool
    ) throws {
        let state = MonitoredContainer<Int, StateError>(trackedInMemory: 0, key: "loop") {
            (_) throws(StateError) in
        }
        let thrown = Observed<StateError?>(nil)
        let observation = state.observe(on: isInline ? .inline : .notifier, initial: false) { _ in
            do throws(StateError) {
                try state.modify { $0 += 1 }
            } catch {
                thrown.update { $0 = error }
            }
        }
        try state.modify(1)
        #expect(thrown.wait { $0 != nil })
        #expect(thrown.current?.code == .feedbackLoop)
        #expect(thrown.current?.message.contains("loop") == true)
        #expect(state.value == 1_001)
        // What nobody told of comes through again.
        try state.modify(-2_000)
        #expect(state.value < 0)
        observation.cancel()
    }

    @Test func `Re-entrant: where it cannot throw the next traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let state = MonitoredState(0, key: "loop/trapped")
            let observation = state.observe(on: .inline) { _ in state ~> { $0 += 1 } }
            state ~> 1
            observation.cancel()
        }
        #expect(result.map { said($0, "loop/trapped", "FEEDBACKLOOP") } == true)
    }

    @Test func `Re-entrant: 1,000 self-caused transactions in a row, and the next throws`() throws {
        let state = MonitoredState(0, key: "loop/transaction")
        let thrown = Observed<(any Error)?>(nil)
        let observation = state.observe(on: .inline, initial: false) { _ in
            guard thrown.current == nil, state.value < 5_000 else { return }
            do { try withTransaction { tx in tx[state] += 1 } } catch {
                thrown.update { $0 = error }
            }
        }
        state ~> 1
        #expect(thrown.wait { $0 != nil })
        #expect((thrown.current as? StateError)?.code == .feedbackLoop)
        #expect(state.value == 1_001)
        observation.cancel()
    }

    @Test func `Re-entrant: 1,000 self-caused touches in a row, and the next traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let state = MonitoredState(0, key: "loop/touched")
            let count = StateLock(0)
            let observation = state.observe(on: .inline, initial: false) { _ in
                count.withLock { $0 += 1 }
                state.touch()
            }
            state ~> 1
            _ = state.waits { _ in count.withLock { $0 } > 2_000 }
            observation.cancel()
        }
        #expect(result.map { said($0, "loop/touched", "FEEDBACKLOOP") } == true)
    }

    @Test func `Convergent: no listener and no stream rests while a newer revision exists`() async {
        let state = MonitoredState(0, key: "a")
        let inline = Told<Int>()
        let told = Told<Int>()
        let reading = Told<Int>()
        let start = state.versioned.revision
        let observations = [
            state.observe(on: .inline, inline.take), state.observe(told.take),
        ]
        let reader = Task {
            for await change in state.changes(since: start, buffer: 2) { reading.take(change) }
        }
        defer { reader.cancel() }
        var generator = SplitMix(seed: 7)
        for round in 1...1_000 {
            for _ in 0...Int.random(in: 0..<4, using: &generator) { state ~> { $0 += 1 } }
            let last = state.value
            #expect(inline.changes.current.last?.new == last, "round \(round)")
            #expect(told.rests { $0 == last }, "round \(round)")
        }
        let last = state.modify(-1)
        let rests = await elsewhere { reading.rests { $0 == -1 } }
        #expect(rests)
        #expect(inline.changes.current.last?.revision == last)
        #expect(told.isChain)
        #expect(reading.isChain)
        for observation in observations { observation.cancel() }
    }

    @Test func `Convergent: a listener that was blocked rests on the last change`() {
        let state = MonitoredState(0, key: "a")
        for round in 1...200 {
            let isTold = BlockingSemaphore()
            let mayGoOn = BlockingSemaphore()
            let told = Told<Int>()
            let observation = state.observe(initial: false) { change in
                isTold.signal()
                mayGoOn.wait()
                told.take(change)
            }
            state ~> { $0 += 1 }
            isTold.wait()
            for _ in 0..<round % 7 { state ~> { $0 += 1 } }
            let last = state.value
            // Once for the first change, once for all others.
            mayGoOn.signal()
            mayGoOn.signal()
            #expect(told.rests { $0 == last }, "round \(round)")
            #expect(told.isChain)
            observation.cancel()
        }
    }

    @Test func `Convergent: one that comes while others write misses nothing`() {
        let state = MonitoredState(0, key: "a")
        let isOver = StateLock(false)
        let bad = StateLock(0)
        let writer = WorkerThread(name: "test-writer")
        writer.start {
            while !isOver.withLock({ $0 }) { state ~> { $0 += 1 } }
        }
        for round in 0..<1_000 {
            let told = Told<Int>()
            let queue: StateQueue = round % 2 == 0 ? .inline : .notifier
            let observation = state.observe(on: queue, told.take)
            let floor = state.value
            if !told.rests(where: { $0 >= floor }) || !told.isChain {
                bad.withLock { $0 += 1 }
            }
            if told.changes.current.first.map({ $0.old == $0.new }) != true {
                bad.withLock { $0 += 1 }
            }
            observation.cancel()
        }
        isOver.withLock { $0 = true }
        writer.join()
        #expect(bad.withLock { $0 } == 0)
    }

    @Test func `Convergent: another epoch is a new beginning, told once`() {
        let queue = ChangeQueue()
        queue.connect("a") { _ = queue.listeners.deliver($0) }
        let slot = StreamSlot()
        let old = Revision(epoch: .random(), number: 9)
        let restored = Revision(epoch: .random(), number: 2)
        let earlier = StateChange(old: 0, new: 1, revision: old, cause: .unknown, number: 1)
        let later = StateChange(old: 1, new: 5, revision: restored, cause: .unknown, number: 2)
        // Before the slot came, so it is not told.
        queue.put(earlier.record)
        _ = queue.listeners.add(slot, after: 1)
        queue.put(later.record)
        queue.drain()
        let told = slot.take().map { StateChange<Int>($0) }
        #expect(told?.old == 1)
        #expect(told?.new == 5)
        #expect(told?.revision == restored)
        #expect(slot.take().map(ObjectIdentifier.init) == nil)
    }

    @Test func `Bounded: 1,024 changes wait for didModify, then modify waits`() {
        let gate = Gate()
        let state = Kept { _, _ in gate.pass() }
        let first = WorkerThread(name: "test-first")
        first.start { state ~> { $0 += 1 } }
        #expect(gate.isReached())
        for _ in 0..<1_024 { state ~> { $0 += 1 } }
        #expect(state.value == 1_025)
        let isDone = Observed(false)
        let next = WorkerThread(name: "test-next")
        next.start {
            state ~> { $0 += 1 }
            isDone.update { $0 = true }
        }
        #expect(!isDone.wait(seconds: 1) { $0 })
        #expect(state.value == 1_025)
        gate.open()
        #expect(isDone.wait { $0 })
        first.join()
        next.join()
        #expect(state.told.rests { $0 == 1_026 })
    }

    @Test func `Bounded: nothing grows while 1,000,000 changes pass a blocked listener`() async {
        let gate = Gate()
        let state = MonitoredState(0, key: "a")
        let told = Told<Int>()
        let observation = state.observe(initial: false) { change in
            gate.pass()
            told.take(change)
        }
        let changes = state.changes(buffer: 16)
        var reader = changes.makeAsyncIterator()
        state ~> 1
        #expect(gate.isReached())
        for _ in 0..<1_000 { state ~> { $0 += 1 } }
        let before = clinux_heap_byte_count()
        for _ in 0..<999_000 { state ~> { $0 += 1 } }
        // The other tests of the process allocate too; a change kept would be 100 MB.
        #expect(eventually { clinux_heap_byte_count() < before + 32 << 20 })
        gate.open()
        #expect(told.rests { $0 == 1_000_001 })
        #expect(told.changes.current.map(\.skipped) == [0, 999_999])
        var skipped = 0
        for _ in 0..<16 { skipped += await reader.next()?.skipped ?? 0 }
        #expect(skipped + 16 == 1_000_001)
        observation.cancel()
    }

    @Test func `a static container has one value in each of 50 scopes`() async {
        enum Shared { static let counter = MonitoredState(0, key: "shared") }
        await withTaskGroup(of: Bool.self) { group in
            for number in 1...50 {
                group.addTask {
                    await StateScope.run {
                        let told = Told<Int>()
                        let strays = StateLock(0)
                        let observation = Shared.counter.observe { change in
                            told.take(change)
                            // The scope of the one who observes is there again.
                            if Shared.counter.value % 1_000 != number {
                                strays.withLock { $0 += 1 }
                            }
                        }
                        Shared.counter ~> number
                        var values = Shared.counter.values.makeAsyncIterator()
                        for _ in 0..<20 {
                            Shared.counter ~> { $0 += 1_000 }
                            await Task.yield()
                        }
                        let last = 20_000 + number
                        let rests = await elsewhere { told.rests { $0 == last } }
                        observation.cancel()
                        let isLatest = await values.next() == last
                        let mine = told.changes.current.dropFirst().allSatisfy {
                            $0.new % 1_000 == number
                        }
                        // The first one that it saw, before `number` was set, is the default.
                        let isAlone = strays.withLock { $0 } <= 1
                        return rests && isLatest && mine && isAlone
                    }
                }
            }
            for await isRight in group { #expect(isRight) }
        }
        #expect(Shared.counter.value == 0)
    }
}

/// Whether a process that ended said each of the words.
func said(_ result: ExitTest.Result, _ words: String...) -> Bool {
    let text = String(decoding: result.standardErrorContent, as: UTF8.self)
    return words.allSatisfy { text.contains($0) }
}
