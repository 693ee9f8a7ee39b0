import StateEngine

/// Passes the changes of a value on to the core of one of its parts, as soon as they are made.
///
/// Nothing waits in it: the part's changes wait in the queues of the part's core. `put` runs under
/// the lock of the whole value.
final class PartQueue<Whole: Sendable, Part: Equatable & Sendable>: ChangeQueue,
    @unchecked Sendable
{
    /// Set once, by the core, which retains this queue.
    weak var part: StateCore<Part>?
    private let path: any KeyPath<Whole, Part> & Sendable

    init(_ path: any KeyPath<Whole, Part> & Sendable) {
        self.path = path
        super.init(scope: nil)
    }

    override var hasRoom: Bool { queues.allSatisfy(\.hasRoom) }

    override func waitForRoom() { for queue in queues { queue.waitForRoom() } }

    override func put(_ change: ChangeRecord, merges: Bool) {
        guard let part else { return }
        let whole = StateChange<Whole>(change)
        part.marked {
            let new = whole.new[keyPath: path]
            part.published.withLock { $0.take(new, whole.values.facts, merges: merges) }
        }
    }

    override func pass(_ change: ChangeRecord) -> Bool {
        put(change, merges: false)
        return false
    }

    override func drain() { part?.drain() }

    override func drainLater() { part?.deliverLater() }

    private var queues: [ChangeQueue] { part?.published.withLock { $0.queues } ?? [] }
}

extension StateCore.Published where Value: Equatable {
    /// Takes a change of the whole value, in which this part may be the same.
    fileprivate mutating func take(_ new: Value, _ facts: ChangeFacts, merges: Bool) {
        guard new != value else {
            // Numbers of another epoch do not compare with those of this one.
            if facts.revision.epoch != epoch {
                (epoch, number) = (facts.revision.epoch, facts.revision.number)
            }
            return
        }
        publish(
            new,
            facts.revision,
            skipped: facts.skipped,
            cause: facts.cause,
            depth: facts.depth,
            merges: merges
        )
    }
}
