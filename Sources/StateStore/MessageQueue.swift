import CLinux
import StateContainers
import StateEngine

/// The queue of messages to a reducer: first in, first out, one at a time.
///
/// The thread that finds it idle handles its messages, its own first. After 64 the notifier
/// continues, so that no sender is kept busy forever. Once 1,024 messages wait, senders block,
/// except those that are delivering a change or an output: that delivery may be what makes room.
final class MessageQueue<Item: Sendable>: Sendable {
    static var limit: Int { 1_024 }
    private static var turn: Int { 64 }

    private struct Waiting {
        var items = Ring<Item>()
        var isDraining = false
        var senders: [BlockingSemaphore] = []
    }

    private let waiting = StateLock(Waiting())

    /// Appends `item`, and handles all messages unless another thread already does.
    func send(_ item: Item, handle: @escaping @Sendable (Item) -> Void) {
        if clinux_body() != nil {
            fatalError(
                "a message must not be sent in the body of modify or in a reducer: "
                    + "return Effect.send(_:), or send it afterwards"
            )
        }
        let mayWait = clinux_depth() == 0
        while true {
            let semaphore = mayWait ? BlockingSemaphore() : nil
            let (isPut, begins) = waiting.withLock { waiting -> (Bool, Bool) in
                if let semaphore, waiting.items.count >= Self.limit {
                    waiting.senders.append(semaphore)
                    return (false, false)
                }
                waiting.items.append(item)
                defer { waiting.isDraining = true }
                return (true, !waiting.isDraining)
            }
            if begins { run(handle) }
            if isPut { return }
            semaphore?.wait()
        }
    }

    fileprivate func run(_ handle: @escaping @Sendable (Item) -> Void) {
        for _ in 0..<Self.turn {
            guard let item = next() else { return }
            handle(item)
        }
        Notifier.shared.run(Turn(queue: self, handle: handle))
    }

    private func next() -> Item? {
        let (item, senders) = waiting.withLock { waiting -> (Item?, [BlockingSemaphore]) in
            let item = waiting.items.popFirst()
            if item == nil { waiting.isDraining = false }
            // Not at each free place: otherwise senders and the draining thread would alternate.
            guard waiting.items.count <= Self.limit / 2 else { return (item, []) }
            defer { waiting.senders = [] }
            return (item, waiting.senders)
        }
        for sender in senders { sender.signal() }
        return item
    }
}

/// Continues the queue on the notifier.
private final class Turn<Item: Sendable>: NotifierJob {
    private let queue: MessageQueue<Item>
    private let handle: @Sendable (Item) -> Void

    init(queue: MessageQueue<Item>, handle: @escaping @Sendable (Item) -> Void) {
        self.queue = queue
        self.handle = handle
    }

    var subject: (key: Key, who: String) { ("store", "\(Item.self)") }

    func run() { queue.run(handle) }
}
