public import Dispatch

/// Where a listener's calls run: in order, one at a time, on every queue.
public enum StateQueue: Sendable {
    /// One of at most 8 threads of the library. Up to seven listeners that block forever delay no
    /// other.
    case notifier
    /// The thread that delivers the change, mostly the writer's. A listener that blocks here blocks
    /// the writer and all later listeners.
    case inline
    /// The main queue, which must be running: `dispatchMain()`, or an `async` main.
    case main
    /// A dispatch queue, serial or concurrent.
    case queue(DispatchQueue)
}
