import StateEngine

/// The effects that a store has received and that have not ended.
final class EffectsUnderWay<Feedback: Sendable, Output: Sendable>: Sendable {
    /// One operation or output, registered when the store received it, whether or not it has
    /// started.
    final class Run: CancellableEffect {
        private struct Progress {
            var isCancelled = false
            var task: Task<Void, Never>?
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

        /// Whether its operation was started, and was not cancelled since.
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
        var last = 0
        /// How many operations were started.
        var started = 0
    }

    /// How many operations may run at once.
    static var limit: Int { 65_536 }

    let outputs = OutputHub<Output>()
    private let clock: any Clock<Duration>
    private let registered = StateLock(Registered())
    /// Passes feedback to the store; set once.
    private let put: StateLock<@Sendable (Feedback, Run) -> Void> = StateLock { _, _ in }

    init(clock: any Clock<Duration>) { self.clock = clock }

    func connect(_ put: @escaping @Sendable (Feedback, Run) -> Void) {
        self.put.withLock { $0 = put }
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
        let run = registered.withLock { registered in
            registered.last += 1
            let run = Run(registered.last, ids: ids, sent: sent)
            registered.runs[run.number] = run
            return run
        }
        sent.begin(run)
        return run
    }

    private func remove(_ run: Run) {
        _ = registered.withLock { $0.runs.removeValue(forKey: run.number) }
        run.sent.end(run)
    }

    // MARK: Carrying out

    /// - Returns: The started tasks.
    private func start(_ step: Step) -> [Task<Void, Never>] {
        switch step {
        case .output(let output, let run):
            if !run.isCancelled { outputs.send(output) }
            remove(run)
            return []
        case .send(let feedback, let run):
            put.withLock { $0 }(feedback, run)
            remove(run)
            return []
        case .run(let operation, let run): return start(operation, run)
        case .merge(let steps): return steps.flatMap { start($0) }
        case .concatenate(let steps): return startInTurn(steps[...])
        case .cancel(let id, let last):
            let runs = registered.withLock { registered in
                registered.runs.filter { $0.key <= last && $0.value.ids.contains(id) }
            }
            for run in runs.values { run.cancel() }
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
            remove(run)
            return []
        }
        registered.withLock { $0.started += 1 }
        let put = put.withLock { $0 }
        let send = Send<Feedback>(clock: clock, put: { put($0, run) }, begin: clock.start)
        let task = Task {
            await operation.run(send)
            self.remove(run)
        }
        run.attach(task)
        return [task]
    }
}
