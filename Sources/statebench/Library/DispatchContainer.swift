import Dispatch

/// A container as textbooks have it: a concurrent queue with synchronous reads and asynchronous
/// barrier writes.
///
/// State changes only in barriers of the queue: the proof of `@unchecked Sendable`.
final class DispatchContainer<Value: Sendable>: @unchecked Sendable {
    private let queue = DispatchQueue(label: "container", attributes: .concurrent)
    private var current: Value

    init(_ value: Value) { current = value }

    var value: Value { queue.sync { current } }

    func modify(_ body: @escaping @Sendable (inout Value) -> Void) {
        queue.async(flags: .barrier) { body(&self.current) }
    }

    /// Waits until all requested work is done.
    func finish() { queue.sync(flags: .barrier) {} }
}
