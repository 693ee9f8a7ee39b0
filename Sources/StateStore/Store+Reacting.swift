public import StateContainers

extension Store {
    /// From now on an output of `other` becomes an input, on the thread that says it; nil is left out.
    ///
    /// As long as both live.
    public func react<Other: StoreType>(
        to other: Other,
        _ input: @escaping @Sendable (Other.Output) -> R.Input?
    ) {
        keep(
            other.outputStream.observe { [weak self] output in
                if let input = input(output) { self?.send(input) }
            }
        )
    }

    /// From now on each change of `container` becomes an input, on the thread that tells of it; nil is left out.
    ///
    /// As long as this store lives, which keeps the container.
    public func react<Value, Failure>(
        to container: MonitoredState<Value, Failure>,
        _ input: @escaping @Sendable (StateChange<Value>) -> R.Input?
    ) {
        keep(
            container.observe(on: .inline, initial: false) { [weak self] change in
                if let input = input(change) { self?.send(input) }
            }
        )
    }

    /// From now on the state of `other` becomes an input, the current one first, then always the latest; nil is left out.
    ///
    /// As long as this store lives.
    public func react<Other: StoreType>(
        toStateOf other: Other,
        _ input: @escaping @Sendable (Other.State) -> R.Input?
    ) {
        let states = other.stateStream
        keep(
            Following(
                Task { [weak self] in
                    for await state in states {
                        if let input = input(state) { self?.send(input) }
                    }
                }
            )
        )
    }

    private func keep(_ reaction: any AnyObject & Sendable) {
        reactions.withLock { $0.append(reaction) }
    }
}

/// A task that ends with who keeps this.
private final class Following: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }
}
