/// A side effect: a value, which a store carries out once the change of the state is committed.
public struct Effect<Feedback: Sendable, Output: Sendable>: Sendable {
    indirect enum Kind: Sendable {
        case output(Output)
        case send(Feedback)
        case run(any EffectOperation<Feedback>)
        case merge([Effect])
        case concatenate([Effect])
        case cancel(EffectID)
        case cancellable(EffectID, Effect)
    }

    let kind: Kind
    private let depth: Int

    /// How deep merged and concatenated effects may be nested in each other.
    ///
    /// Merged in merged ones, and concatenated in concatenated ones, are one level.
    public static var depthLimit: Int { 1_000 }

    private init(kind: Kind, depth: Int = 1) {
        guard depth <= Effect.depthLimit else {
            fatalError(
                "an effect is nested deeper than \(Effect.depthLimit): merge or concatenate an array of effects"
            )
        }
        self.kind = kind
        self.depth = depth
    }

    /// No effect.
    public static var none: Effect { Effect(kind: .merge([])) }

    /// Delivers `output` once, to whoever is listening.
    public static func output(_ output: Output) -> Effect { Effect(kind: .output(output)) }

    /// Sends `feedback` to the reducer, behind earlier messages.
    public static func send(_ feedback: Feedback) -> Effect { Effect(kind: .send(feedback)) }

    /// Runs a closure in a task; it must report failures as feedback.
    public static func run(_ body: @escaping @Sendable (Send<Feedback>) async -> Void) -> Effect {
        run(ClosureOperation(body: body))
    }

    /// Runs an operation in a task.
    public static func run(_ operation: some EffectOperation<Feedback>) -> Effect {
        Effect(kind: .run(operation))
    }

    /// Runs `handler` with `request` in a task.
    public static func perform<Request: Sendable>(
        _ request: Request,
        with handler: some EffectHandler<Request, Feedback>
    ) -> Effect {
        run { await handler.perform(request, $0) }
    }

    /// All of them, started in this order; none waits for another.
    public static func merge(_ effects: Effect...) -> Effect { merge(effects) }

    /// All of them, started in this order; none waits for another.
    ///
    /// - Complexity: O(*n*) in the effects, also in those that are merged already.
    public static func merge(_ effects: [Effect]) -> Effect {
        // One level, however it was built: nested as deep as a loop is long, it would overflow the
        // stack.
        var (all, depth): ([Effect], Int) = ([], 1)
        for effect in effects {
            if case .merge(let parts) = effect.kind {
                all += parts
                depth = max(depth, effect.depth)
            } else {
                all.append(effect)
                depth = max(depth, effect.depth + 1)
            }
        }
        return Effect(kind: .merge(all), depth: depth)
    }

    /// One after the other: each starts when the one before has ended.
    public static func concatenate(_ effects: Effect...) -> Effect { concatenate(effects) }

    /// One after the other: each starts when the one before has ended.
    ///
    /// - Complexity: O(*n*) in the effects, also in those that are concatenated already.
    public static func concatenate(_ effects: [Effect]) -> Effect {
        var (all, depth): ([Effect], Int) = ([], 1)
        for effect in effects {
            if case .concatenate(let parts) = effect.kind {
                all += parts
                depth = max(depth, effect.depth)
            } else {
                all.append(effect)
                depth = max(depth, effect.depth + 1)
            }
        }
        return Effect(kind: .concatenate(all), depth: depth)
    }

    /// Cancels the effects that this store received before under `id`, started or not.
    ///
    /// What they still send is ignored.
    public static func cancel(id: some Hashable & Sendable) -> Effect {
        Effect(kind: .cancel(EffectID(id)))
    }

    /// Runs `effect` after `duration`, unless the store gets another effect under `id` before.
    public static func debounce(
        id: some Hashable & Sendable,
        for duration: Duration,
        _ effect: Effect
    ) -> Effect {
        let pause = run(TimerOperation<Feedback>(every: duration, feedback: nil))
        return Effect.concatenate(pause, effect).cancellable(id: id, cancelInFlight: true)
    }

    /// Sends `feedback` after each `duration`, until `id` is cancelled.
    ///
    /// It replaces an earlier timer of that id.
    ///
    /// - Precondition: `duration` is above 0.
    public static func timer(
        id: some Hashable & Sendable,
        every duration: Duration,
        _ feedback: Feedback
    ) -> Effect {
        guard duration > .zero else {
            fatalError("a timer's interval must be above 0, not \(duration)")
        }
        return run(TimerOperation(every: duration, feedback: feedback))
            .cancellable(id: id, cancelInFlight: true)
    }

    /// The same effect, under an id for ``cancel(id:)``.
    ///
    /// - Parameters:
    ///   - id: The id.
    ///   - cancelInFlight: Whether to cancel the effects that the store received before under `id`.
    /// - Returns: The effect with the id.
    public func cancellable(
        id: some Hashable & Sendable,
        cancelInFlight: Bool = false
    ) -> Effect {
        let effect = Effect(kind: .cancellable(EffectID(id), self), depth: depth + 1)
        return cancelInFlight ? .merge(.cancel(id: id), effect) : effect
    }

    /// The same effect with the feedback and outputs of a parent of this part.
    public func map<WholeFeedback, WholeOutput>(
        feedback: @escaping @Sendable (Feedback) -> WholeFeedback,
        output: @escaping @Sendable (Output) -> WholeOutput
    ) -> Effect<WholeFeedback, WholeOutput> {
        let map = { (effect: Effect) in effect.map(feedback: feedback, output: output) }
        return switch kind {
        case .output(let value): .output(output(value))
        case .send(let value): .send(feedback(value))
        case .run(let operation): .run(MappedOperation(operation: operation, map: feedback))
        case .merge(let effects): .merge(effects.map(map))
        case .concatenate(let effects): .concatenate(effects.map(map))
        case .cancel(let id): Effect<WholeFeedback, WholeOutput>(kind: .cancel(id))
        case .cancellable(let id, let effect):
            Effect<WholeFeedback, WholeOutput>(kind: .cancellable(id, map(effect)), depth: depth)
        }
    }
}

/// An effect as an object.
public protocol EffectOperation<Feedback>: Sendable {
    /// The feedback that it sends.
    associatedtype Feedback: Sendable

    /// Performs the effect. If the effect is cancelled, so is the task.
    func run(_ send: Send<Feedback>) async
}

/// Performs effects that are requests.
public protocol EffectHandler<Request, Feedback>: Sendable {
    /// The requests that it performs.
    associatedtype Request: Sendable
    /// The feedback that it sends.
    associatedtype Feedback: Sendable

    /// Performs a request. If the effect is cancelled, so is the task.
    func perform(_ request: Request, _ send: Send<Feedback>) async
}

/// Sends feedback from an effect to its store.
public struct Send<Feedback: Sendable>: Sendable {
    /// The store's clock.
    public let clock: any Clock<Duration>
    let put: @Sendable (Feedback) -> Void
    /// The clock with the effect's start time; only for operations of the library.
    let begin: any ClockStart

    /// Sends `feedback` to the reducer, behind earlier messages.
    ///
    /// Does nothing if the effect was cancelled or the store is gone.
    public func callAsFunction(_ feedback: Feedback) { put(feedback) }

    func map<Part>(_ map: @escaping @Sendable (Part) -> Feedback) -> Send<Part> {
        Send<Part>(clock: clock, put: { [put] in put(map($0)) }, begin: begin)
    }
}

/// An id for cancelling effects.
struct EffectID: Hashable, Sendable {
    private let name: any Hashable & Sendable

    init(_ name: some Hashable & Sendable) { self.name = name }

    static func == (left: EffectID, right: EffectID) -> Bool {
        AnyHashable(left.name) == AnyHashable(right.name)
    }

    func hash(into hasher: inout Hasher) { name.hash(into: &hasher) }
}

// MARK: - Operations of the library

private struct ClosureOperation<Feedback: Sendable>: EffectOperation {
    let body: @Sendable (Send<Feedback>) async -> Void

    func run(_ send: Send<Feedback>) async { await body(send) }
}

private struct MappedOperation<Part: Sendable, Feedback: Sendable>: EffectOperation {
    let operation: any EffectOperation<Part>
    let map: @Sendable (Part) -> Feedback

    func run(_ send: Send<Feedback>) async { await operation.run(send.map(map)) }
}

/// Waits once; or, with feedback, sends it after each wait.
private struct TimerOperation<Feedback: Sendable>: EffectOperation {
    let every: Duration
    let feedback: Feedback?

    func run(_ send: Send<Feedback>) async {
        var rounds = 0
        while !Task.isCancelled {
            rounds += 1
            do { try await send.begin.sleep(until: every * rounds) } catch { return }
            guard let feedback, !Task.isCancelled else { return }
            send(feedback)
        }
    }
}

/// The start time of an effect, on any clock.
///
/// Taken when the store starts the effect, not when its task first runs. So a clock that is
/// advanced by hand sees the right time.
protocol ClockStart: Sendable {
    func sleep(until offset: Duration) async throws
}

struct Start<C: Clock<Duration>>: ClockStart {
    let clock: C
    let instant: C.Instant

    init(_ clock: C) {
        self.clock = clock
        instant = clock.now
    }

    func sleep(until offset: Duration) async throws {
        try await clock.sleep(until: instant.advanced(by: offset), tolerance: nil)
    }
}

extension Clock where Duration == Swift.Duration {
    var start: any ClockStart { Start(self) }
}
