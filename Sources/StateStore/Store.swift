import CLinux
public import Observation
public import StateContainers
import StateEngine

/// A state that changes only when a reducer handles messages.
///
/// ```swift
/// let store = Store(Numbers.State(), reducer: Numbers())
/// store.send(.increment)
/// print(store.count)
/// ```
///
/// Any thread may send. Messages are handled one at a time and exactly once; those of one thread in
/// their order. Once 1,024 messages wait, senders wait too. When the store is released, its effects
/// are cancelled. For the Observation library, each property that is read is tracked by itself.
@dynamicMemberLookup
public final class Store<R: Reducer>: StoreType, Observable {
    /// The type of its state.
    public typealias State = R.State
    /// The type of the messages from outside.
    public typealias Input = R.Input
    /// The type of its outputs.
    public typealias Output = R.Output

    typealias Message = StateStore.Message<R.Input, R.Feedback>
    typealias Effects = EffectsUnderWay<R.Feedback, R.Output>

    private struct Item: Sendable {
        let message: Message
        let sent: Sent
        /// The effect that sent the message.
        var run: Effects.Run?
        /// How many changes in a row led to the message.
        let depth: Int64
        let scope: StateScope?
    }

    let container: any StoreContainer<R.State>
    private let reducer: R
    private let queue = MessageQueue<Item>()
    private let effects: Effects
    private let handled: (@Sendable (Message, R.State) -> Void)?
    /// The observations of ``react(to:_:)`` and the like, retained as long as the store lives.
    let reactions = StateLock<[any AnyObject & Sendable]>([])

    /// Makes a store whose state is in memory.
    ///
    /// - Parameters:
    ///   - state: The initial state.
    ///   - reducer: Handles the messages.
    ///   - clock: The clock for delays in effects; by default that of ``StateDependencies``.
    public convenience init(
        _ state: R.State,
        reducer: R,
        clock: any Clock<Duration> = StateDependencies.current.clock
    ) {
        self.init(MonitoredState(state, key: "store"), reducer: reducer, clock: clock)
    }

    /// Makes a store whose state is in a container, which may be an entry of the daemon.
    ///
    /// Changes that others make to the container appear on ``stateStream`` without a message. If
    /// the container refuses a change, ``Sent/settled()`` throws, and no effect starts.
    ///
    /// - Parameters:
    ///   - container: Holds the state.
    ///   - reducer: Handles the messages; it may run again on a newer state.
    ///   - clock: The clock for delays in effects; by default that of ``StateDependencies``.
    public convenience init<Failure>(
        _ container: MonitoredContainer<R.State, Failure>,
        reducer: R,
        clock: any Clock<Duration> = StateDependencies.current.clock
    ) {
        self.init(in: container, reducer: reducer, clock: clock)
    }

    /// The same; `handled` gets each handled message, in order, with the state that it made.
    package init(
        in container: any StoreContainer<R.State>,
        reducer: R,
        clock: any Clock<Duration> = ContinuousClock(),
        handled: (@Sendable (StateStore.Message<R.Input, R.Feedback>, R.State) -> Void)? = nil
    ) {
        self.container = container
        self.reducer = reducer
        self.handled = handled
        effects = Effects(clock: clock)
        effects.connect { [weak self] feedback, run in
            guard let self, !run.isCancelled else { return }
            run.sent.begin()
            run.addFeedback()
            enqueue(.feedback(feedback), run.sent, run)
        }
    }

    deinit { effects.cancelAll() }

    /// How many operations run and are not cancelled, and how many were started so far; for tests.
    package var operationCounts: (running: Int, started: Int) { effects.operationCounts }

    // MARK: Reading

    /// The current state.
    public var state: R.State { container.observedValue(\.self) }

    /// A part of the current state.
    public subscript<Field>(
        dynamicMember path: any KeyPath<R.State, Field> & Sendable
    ) -> Field {
        container.observedValue(path)
    }

    /// A binding that shows a part of the state, and sends an input when it is set.
    ///
    /// - Parameters:
    ///   - path: The part.
    ///   - input: Makes the input of the new part.
    /// - Returns: The binding; it retains the store.
    public func binding<Part: Sendable>(
        _ path: any KeyPath<R.State, Part> & Sendable,
        send input: @escaping @Sendable (Part) -> R.Input
    ) -> StateBinding<Part> {
        StateBinding {
            self[dynamicMember: path]
        } set: {
            self.send(input($0))
        }
    }

    /// The current state, then always the latest; equal ones are not repeated.
    public var stateStream: StoreStates<R.State> { StoreStates(container.values) }

    /// The outputs from this access on.
    public var outputStream: StoreOutputs<R.Output> { StoreOutputs(effects.outputs) }

    // MARK: Messages

    /// Sends `input` to the reducer, behind earlier messages.
    ///
    /// If the store is idle, handles it at once, so that ``state`` shows the result.
    ///
    /// Calling this in the body of `modify` or in a reducer ends the process.
    ///
    /// - Returns: The message, to wait for its commit or its effects.
    @discardableResult
    public func send(_ input: R.Input) -> Sent {
        let sent = Sent()
        enqueue(.input(input), sent, nil)
        return sent
    }

    private func enqueue(_ message: Message, _ sent: Sent, _ run: Effects.Run?) {
        let item = Item(
            message: message,
            sent: sent,
            run: run,
            depth: clinux_depth(),
            scope: StateScope.current
        )
        queue.send(item) { self.handle($0) }
    }

    private func handle(_ item: Item) {
        let depth = clinux_depth()
        defer { clinux_set_depth(depth) }
        clinux_set_depth(item.depth)
        StateScope.$current.withValue(item.scope) { answer(item) }
    }

    private func answer(_ item: Item) {
        defer { if let run = item.run { effects.endOne(of: run) } }
        // Feedback that a cancelled effect sent before it was cancelled is ignored too.
        if let run = item.run, run.isCancelled { return item.sent.end() }
        if item.sent.isCancelled { return item.sent.settle(.failure(CancellationError())) }
        var state: R.State?
        do {
            guard effects.hasRoom else {
                throw StateError(.limit, "the store already runs \(Effects.limit) effects")
            }
            let done = try container.change(because: item.message.name) { current in
                let effect = reducer.reduce(item.message, into: &current)
                if handled != nil { state = current }
                return effect
            }
            if let handled, let state { handled(item.message, state) }
            // Messages that listeners send for an output are one change further.
            clinux_set_depth(item.depth + 1)
            effects.begin(done.result, for: item.sent)
            item.sent.settle(.success(done.revision))
        } catch {
            item.sent.settle(.failure(error))
        }
    }
}
