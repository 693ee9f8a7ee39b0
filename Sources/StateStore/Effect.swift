/// What is to be done beside a change of the state: a value, which a store carries out once the change is committed.
public struct Effect<Feedback: Sendable, Output: Sendable>: Sendable {
    indirect enum Kind: Sendable {
        case output(Output)
        case run(any EffectOperation<Feedback>)
        case merge([Effect])
        case concatenate([Effect])
        case cancel(EffectID)
        case cancellable(EffectID, Effect)
    }

    let kind: Kind

    /// Nothing.
    public static var none: Effect { Effect(kind: .merge([])) }

    /// Says `output` to those who listen.
    public static func output(_ output: Output) -> Effect { Effect(kind: .output(output)) }

    /// Runs a closure in a task; what fails in it becomes feedback.
    public static func run(_ body: @escaping @Sendable (Send<Feedback>) async -> Void) -> Effect {
        run(ClosureOperation(body: body))
    }

    /// Runs an object in a task.
    public static func run(_ operation: some EffectOperation<Feedback>) -> Effect {
        Effect(kind: .run(operation))
    }

    /// Has `handler` carry out `request` in a task.
    public static func perform<Request: Sendable>(
        _ request: Request,
        with handler: some EffectHandler<Request, Feedback>
    ) -> Effect {
        run { await handler.perform(request, $0) }
    }

    /// All of them, begun in this order, none waiting for another.
    public static func merge(_ effects: Effect...) -> Effect { merge(effects) }

    /// All of them, begun in this order, none waiting for another.
    public static func merge(_ effects: [Effect]) -> Effect { Effect(kind: .merge(effects)) }

    /// One after the other: each begins when the one before has ended.
    public static func concatenate(_ effects: Effect...) -> Effect { concatenate(effects) }

    /// One after the other: each begins when the one before has ended.
    public static func concatenate(_ effects: [Effect]) -> Effect {
        Effect(kind: .concatenate(effects))
    }

    /// Cancels what this store was told before to run under `id`, begun or not; what it still sends is not handled.
    public static func cancel(id: some Hashable & Sendable) -> Effect {
        Effect(kind: .cancel(EffectID(id)))
    }

    /// Runs `effect` when nobody asked for another under `id` for so long.
    public static func debounce(
        id: some Hashable & Sendable,
        for duration: Duration,
        _ effect: Effect
    ) -> Effect {
        let pause = run(TimerOperation<Feedback>(every: duration, feedback: nil))
        return .merge(.cancel(id: id), Effect.concatenate(pause, effect).cancellable(id: id))
    }

    /// Sends `feedback` after each `duration`, which is above 0, until `id` is cancelled; a timer of that id before it ends.
    public static func timer(
        id: some Hashable & Sendable,
        every duration: Duration,
        _ feedback: Feedback
    ) -> Effect {
        precondition(duration > .zero, "a timer that fires every \(duration) never rests")
        let timer = run(TimerOperation(every: duration, feedback: feedback))
        return .merge(.cancel(id: id), timer.cancellable(id: id))
    }

    /// The same effect, which ``cancel(id:)`` ends.
    public func cancellable(id: some Hashable & Sendable) -> Effect {
        Effect(kind: .cancellable(EffectID(id), self))
    }

    /// The same effect in the words of a whole of which this is a part.
    public func map<WholeFeedback, WholeOutput>(
        feedback: @escaping @Sendable (Feedback) -> WholeFeedback,
        output: @escaping @Sendable (Output) -> WholeOutput
    ) -> Effect<WholeFeedback, WholeOutput> {
        let map = { (effect: Effect) in effect.map(feedback: feedback, output: output) }
        return switch kind {
        case .output(let said): .output(output(said))
        case .run(let operation): .run(MappedOperation(operation: operation, map: feedback))
        case .merge(let effects): .merge(effects.map(map))
        case .concatenate(let effects): .concatenate(effects.map(map))
        case .cancel(let id): Effect<WholeFeedback, WholeOutput>(kind: .cancel(id))
        case .cancellable(let id, let effect):
            Effect<WholeFeedback, WholeOutput>(kind: .cancellable(id, map(effect)))
        }
    }
}

/// An effect as an object with a life of its own.
public protocol EffectOperation<Feedback>: Sendable {
    /// What it sends.
    associatedtype Feedback: Sendable

    /// Does what is to be done; its task is cancelled with the effect.
    func run(_ send: Send<Feedback>) async
}

/// Who carries out effects that are values.
public protocol EffectHandler<Request, Feedback>: Sendable {
    /// What it is asked for.
    associatedtype Request: Sendable
    /// What it sends.
    associatedtype Feedback: Sendable

    /// Does what is asked; its task is cancelled with the effect.
    func perform(_ request: Request, _ send: Send<Feedback>) async
}

/// The way back into the store for an effect.
public struct Send<Feedback: Sendable>: Sendable {
    /// The store's clock.
    public let clock: any Clock<Duration>
    let put: @Sendable (Feedback) -> Void
    /// Waits, counted from when the effect began; only for operations of the library.
    let begin: any ClockStart

    /// Has the reducer handle `feedback`, behind what came before; nothing where the effect was cancelled or the store is gone.
    public func callAsFunction(_ feedback: Feedback) { put(feedback) }

    func map<Part>(_ map: @escaping @Sendable (Part) -> Feedback) -> Send<Part> {
        Send<Part>(clock: clock, put: { [put] in put(map($0)) }, begin: begin)
    }
}

/// A name under which effects are cancelled.
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

/// Waits once, or sends each time it has waited.
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

/// The instant at which an effect began, on whatever clock.
///
/// Taken when the store begins it, not when its task first runs: so a clock advanced by hand finds it in time.
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
