import StateEngine

extension ConnectionHolders {
    /// Goes on as the holder that it was in the last process; nobody else can have claimed its keys.
    ///
    /// If the holder has ended, its keys are deleted, as if the connection had.
    func resume(_ holder: Holder) {
        guard lifetimes.connections[holder] == nil, core.admit(holder) else { return }
        lifetimes.connections[holder] = .passUnretained(self)
        connectionHolder = holder
    }
}
