public import StateContainers

extension Store {
    /// Sends an input for each output of `other`, on the thread that delivers the output.
    ///
    /// Outputs for which `input` returns nil are ignored.
    ///
    /// Ends when one of the stores is released.
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

    /// Sends an input for each change of `container`, on the thread that delivers the change.
    ///
    /// Changes for which `input` returns nil are ignored.
    ///
    /// Ends when this store is released; until then it retains the container.
    public func react<Value, Failure>(
        to container: MonitoredContainer<Value, Failure>,
        _ input: @escaping @Sendable (StateChange<Value>) -> R.Input?
    ) {
        keep(
            container.observe(on: .inline, initial: false) { [weak self] change in
                if let input = input(change) { self?.send(input) }
            }
        )
    }

    /// Sends an input for the state of `other`: the current one first, then always the latest.
    ///
    /// States for which `input` returns nil are ignored.
    ///
    /// Ends when this store is released.
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

/// A task that is cancelled when this object is released.
private final class Following: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }
}
