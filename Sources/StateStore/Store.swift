import CLinux
public import StateContainers
import StateEngine

/// A state that changes only as a reducer answers messages.
///
/// ```swift
/// let store = Store(Numbers.State(), reducer: Numbers())
/// store.send(.increment)
/// print(store.count)
/// ```
///
/// Any thread may send: messages are handled one at a time, those of one thread in their order, each once. 1,024 wait at most, then a
/// sender waits. Its effects end with the store.
@dynamicMemberLookup
public final class Store<R: Reducer>: StoreType {
    /// What it is in.
    public typealias State = R.State
    /// What may be sent to it.
    public typealias Input = R.Input
    /// What it says.
    public typealias Output = R.Output

    typealias Message = StateStore.Message<R.Input, R.Feedback>
    typealias Effects = EffectsUnderWay<R.Feedback, R.Output>

    private struct Item: Sendable {
        let message: Message
        let sent: Sent
        /// The effect that sent it.
        var run: Effects.Run?
        /// How many changes in a row led to it.
        let depth: Int64
        let scope: StateScope?
    }

    let home: any Home<R.State>
    private let reducer: R
    private let queue = MessageQueue<Item>()
    private let effects: Effects
    private let handled: (@Sendable (Message, R.State) -> Void)?
    /// What it reacts to, kept as long as it lives.
    let reactions = StateLock<[any AnyObject & Sendable]>([])

    /// A store whose state is in memory.
    ///
    /// - Parameters:
    ///   - state: The first state.
    ///   - reducer: How it answers messages.
    ///   - clock: What effects wait by.
    public convenience init(
        _ state: R.State,
        reducer: R,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.init(MonitoredState(state, key: "store"), reducer: reducer, clock: clock)
    }

    /// A store whose state is in a container, which may be the daemon's.
    ///
    /// What others change there comes on ``stateStream`` without a message. Where it is refused, ``Sent/settled()`` throws, and no
    /// effect begins.
    ///
    /// - Parameters:
    ///   - home: Where the state is.
    ///   - reducer: How it answers messages; it may run again on a newer state.
    ///   - clock: What effects wait by.
    public convenience init<Failure>(
        _ home: MonitoredState<R.State, Failure>,
        reducer: R,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.init(in: home, reducer: reducer, clock: clock)
    }

    /// The same, with one who is told of each message that was handled, in their order, and of the state that it made.
    package init(
        in home: any Home<R.State>,
        reducer: R,
        clock: any Clock<Duration> = ContinuousClock(),
        handled: (@Sendable (StateStore.Message<R.Input, R.Feedback>, R.State) -> Void)? = nil
    ) {
        self.home = home
        self.reducer = reducer
        self.handled = handled
        effects = Effects(clock: clock)
        effects.connect { [weak self] feedback, run in
            run.sent.begin()
            if let self, !run.isCancelled {
                enqueue(.feedback(feedback), run.sent, run)
            } else {
                run.sent.end()
            }
        }
    }

    deinit { effects.cancelAll() }

    // MARK: Reading

    /// The state of now.
    public var state: R.State { home.value }

    /// A part of the state of now.
    public subscript<Field>(dynamicMember path: KeyPath<R.State, Field>) -> Field {
        state[keyPath: path]
    }

    /// The current state, then always the latest; equal ones are not repeated.
    public var stateStream: StoreStates<R.State> { StoreStates(home.values) }

    /// The outputs from this access on.
    public var outputStream: StoreOutputs<R.Output> { StoreOutputs(effects.outputs) }

    // MARK: Messages

    /// Has the reducer handle `input`, behind what came before; where nobody is at it, at once, so that ``state`` shows the result.
    ///
    /// Not in the body of `modify`, nor in a reducer: that ends the process.
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
        // What a cancelled effect sent before is not heard either.
        if let run = item.run, run.isCancelled { return item.sent.end() }
        var state: R.State?
        do {
            guard effects.hasRoom else {
                throw StateError(.limit, "\(Effects.limit) effects of the store are under way")
            }
            let done = try home.change(because: item.message.name) { current in
                let effect = reducer.reduce(item.message, into: &current)
                if handled != nil { state = current }
                return effect
            }
            if let handled, let state { handled(item.message, state) }
            // Those who hear an output and send in turn are one change further.
            clinux_set_depth(item.depth + 1)
            effects.begin(done.result, for: item.sent)
            item.sent.settle(.success(done.revision))
        } catch {
            item.sent.settle(.failure(error))
        }
    }
}
