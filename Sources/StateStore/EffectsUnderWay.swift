import StateEngine

/// The effects that a store has received and that have not ended.
final class EffectsUnderWay<Feedback: Sendable, Output: Sendable>: Sendable {
    /// One operation or output, registered when the store received it, whether or not it has
    /// started, until it has ended and the reducer has handled what it sent.
    ///
    /// So an effect can be cancelled as long as its feedback waits for the reducer.
    final class Run: CancellableEffect {
        private struct Progress {
            var isCancelled = false
            var task: Task<Void, Never>?
            /// One for the operation until it ends, and one for each feedback that waits.
            var pending = 1
        }

        let number: Int
        let ids: [EffectID]
        let sent: Sent
        private let progress = StateLock(Progress())

        init(_ number: Int, ids: [EffectID], sent: Sent) {
            self.number = number
            self.ids = ids
            self.sent = sent
        }

        var isCancelled: Bool { progress.withLock { $0.isCancelled } }

        /// Whether its operation was started, and was not cancelled since; also until the reducer has
        /// handled what it sent.
        var isRunning: Bool { progress.withLock { $0.task != nil } }

        func cancel() {
            let task = progress.withLock { progress in
                progress.isCancelled = true
                return progress.task.take()
            }
            task?.cancel()
        }

        func attach(_ task: Task<Void, Never>) {
            let isCancelled = progress.withLock { progress in
                if !progress.isCancelled { progress.task = task }
                return progress.isCancelled
            }
            if isCancelled { task.cancel() }
        }

        /// Counts a feedback that is about to wait for the reducer.
        func addFeedback() { progress.withLock { $0.pending += 1 } }

        /// Ends the operation, or the waiting of one feedback; returns true if nothing is left.
        func endOne() -> Bool {
            progress.withLock { progress in
                progress.pending -= 1
                return progress.pending == 0
            }
        }
    }

    /// An effect whose operations are registered.
    private indirect enum Step: Sendable {
        case output(Output, Run)
        case send(Feedback, Run)
        case run(any EffectOperation<Feedback>, Run)
        case merge([Step])
        case concatenate([Step])
        /// Cancels the runs that were registered before this number.
        case cancel(EffectID, Int)
    }

    private struct Registered {
        var runs: [Int: Run] = [:]
        /// The numbers of the runs that have an id.
        var numbers: [EffectID: Set<Int>] = [:]
        var last = 0
        /// How many operations were started.
        var started = 0

        mutating func add(_ ids: [EffectID], _ sent: Sent) -> Run {
            last += 1
            let run = Run(last, ids: ids, sent: sent)
            runs[last] = run
            for id in ids { numbers[id, default: []].insert(last) }
            return run
        }

        mutating func remove(_ run: Run) {
            runs[run.number] = nil
            for id in run.ids {
                numbers[id]?.remove(run.number)
                if numbers[id]?.isEmpty == true { numbers[id] = nil }
            }
        }

        func runs(with id: EffectID, upTo last: Int) -> [Run] {
            (numbers[id] ?? []).compactMap { $0 <= last ? runs[$0] : nil }
        }
    }

    /// Passes feedback to the store.
    ///
    /// A structure, because a function that is read out of a lock is wrapped in two more, each
    /// time: https://github.com/swiftlang/swift/issues/91348
    private struct Receiver: Sendable {
        let put: @Sendable (Feedback, Run) -> Void
    }

    /// How many operations may run at once.
    static var limit: Int { 65_536 }

    let outputs = OutputHub<Output>()
    private let clock: any Clock<Duration>
    private let registered = StateLock(Registered())
    /// Set once, when the store has been made.
    private let receiver = StateLock<Receiver?>(nil)

    init(clock: any Clock<Duration>) { self.clock = clock }

    func connect(_ put: @escaping @Sendable (Feedback, Run) -> Void) {
        receiver.withLock { $0 = Receiver(put: put) }
    }

    /// Whether another message may start effects.
    var hasRoom: Bool { registered.withLock { $0.runs.count < Self.limit } }

    /// How many operations run and are not cancelled, and how many were started so far.
    var operationCounts: (running: Int, started: Int) {
        let (runs, started) = registered.withLock { ($0.runs.values.map { $0 }, $0.started) }
        return (runs.count { $0.isRunning }, started)
    }

    /// Starts an effect.
    ///
    /// The parts that need no waiting are done when this returns.
    func begin(_ effect: Effect<Feedback, Output>, for sent: Sent) {
        if case .merge(let effects) = effect.kind, effects.isEmpty { return }
        _ = start(register(effect, ids: [], sent))
    }

    func cancelAll() {
        for run in registered.withLock({ $0.runs.values.map { $0 } }) { run.cancel() }
    }

    // MARK: Registering

    private func register(
        _ effect: Effect<Feedback, Output>,
        ids: [EffectID],
        _ sent: Sent
    ) -> Step {
        switch effect.kind {
        case .output(let output): return .output(output, makeRun(ids, sent))
        case .send(let feedback): return .send(feedback, makeRun(ids, sent))
        case .run(let operation): return .run(operation, makeRun(ids, sent))
        case .merge(let effects): return .merge(effects.map { register($0, ids: ids, sent) })
        case .concatenate(let effects):
            return .concatenate(effects.map { register($0, ids: ids, sent) })
        case .cancel(let id): return .cancel(id, registered.withLock { $0.last })
        case .cancellable(let id, let effect): return register(effect, ids: ids + [id], sent)
        }
    }

    private func makeRun(_ ids: [EffectID], _ sent: Sent) -> Run {
        let run = registered.withLock { $0.add(ids, sent) }
        sent.begin(run)
        return run
    }

    /// Takes the end of an operation, or of the waiting of one feedback.
    func endOne(of run: Run) {
        guard run.endOne() else { return }
        registered.withLock { $0.remove(run) }
        run.sent.end(run)
    }

    // MARK: Carrying out

    /// - Returns: The started tasks.
    private func start(_ step: Step) -> [Task<Void, Never>] {
        switch step {
        case .output(let output, let run):
            if !run.isCancelled { outputs.send(output) }
            endOne(of: run)
            return []
        case .send(let feedback, let run):
            put(feedback, of: run)
            endOne(of: run)
            return []
        case .run(let operation, let run): return start(operation, run)
        case .merge(let steps): return steps.flatMap { start($0) }
        case .concatenate(let steps): return startInTurn(steps[...])
        case .cancel(let id, let last):
            for run in registered.withLock({ $0.runs(with: id, upTo: last) }) { run.cancel() }
            return []
        }
    }

    private func startInTurn(_ steps: ArraySlice<Step>) -> [Task<Void, Never>] {
        var rest = steps
        while let step = rest.popFirst() {
            let tasks = start(step)
            guard !tasks.isEmpty, !rest.isEmpty else {
                if rest.isEmpty { return tasks }
                continue
            }
            let later = rest
            return [
                Task {
                    for task in tasks { await task.value }
                    for task in self.startInTurn(later) { await task.value }
                }
            ]
        }
        return []
    }

    private func start(
        _ operation: any EffectOperation<Feedback>,
        _ run: Run
    ) -> [Task<Void, Never>] {
        guard !run.isCancelled else {
            endOne(of: run)
            return []
        }
        registered.withLock { $0.started += 1 }
        let send = Send<Feedback>(
            clock: clock,
            put: { self.put($0, of: run) },
            begin: clock.start
        )
        let task = Task {
            await operation.run(send)
            self.endOne(of: run)
        }
        run.attach(task)
        return [task]
    }

    private func put(_ feedback: Feedback, of run: Run) {
        receiver.withLock { $0 }?.put(feedback, run)
    }
}
