public import Dispatch

/// Where a listener is told of changes: one call after the other, in order, wherever it is.
public enum StateQueue: Sendable {
    /// On one of at most 8 threads of the library. Seven listeners that block for ever delay no other.
    case notifier
    /// On the thread that tells of the change, mostly the writer's: who blocks here blocks the writer, and every listener that comes
    /// after.
    case inline
    /// On the main queue, which must be running: `dispatchMain()`, or an `async` main.
    case main
    /// On a dispatch queue, a serial or a concurrent one.
    case queue(DispatchQueue)
}
