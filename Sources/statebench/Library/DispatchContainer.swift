import Dispatch

/// A container as the literature has it: a concurrent queue, reads that wait for it, writes that do not wait and run alone.
///
/// What changes is changed in barriers of the queue: the proof of `@unchecked Sendable`.
final class DispatchContainer<Value: Sendable>: @unchecked Sendable {
    private let queue = DispatchQueue(label: "container", attributes: .concurrent)
    private var current: Value

    init(_ value: Value) { current = value }

    var value: Value { queue.sync { current } }

    func modify(_ body: @escaping @Sendable (inout Value) -> Void) {
        queue.async(flags: .barrier) { body(&self.current) }
    }

    /// Waits until all that was asked for is done.
    func finish() { queue.sync(flags: .barrier) {} }
}
