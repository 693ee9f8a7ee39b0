import Glibc
import StateClient
import StateModel

/// This process in the queue of a lock.
///
/// Its key lives as long as the process, so it keeps its place when the daemon restarts, and leaves
/// nothing behind when it is killed.
struct LockContender {
    private let invocation: Invocation
    private let name: String
    private let isShared: Bool
    let key: Key
    private let deadline: Deadline?
    private var client: Client

    /// Connects.
    init(
        _ invocation: Invocation,
        _ name: String,
        isShared: Bool,
        until deadline: Deadline?
    ) throws(Failure) {
        (self.invocation, self.name, self.isShared) = (invocation, name, isShared)
        self.deadline = deadline
        key = try attempt(try LockQueue.makeKey(of: name))
        client = try invocation.connect()
    }

    /// Waits for the lock, in the order of arrival.
    ///
    /// - Returns: The token.
    /// - Throws: ``Failure/negative`` if the deadline passed first; the process is not in the queue
    ///   then.
    mutating func acquire() throws(Failure) -> Int64 {
        while true {
            do throws(StateError) {
                if let token = try tryOnce() { return token }
            } catch {
                try reconnect(after: error)
            }
            if deadline?.hasPassed ?? false { try giveUp() }
        }
    }

    /// Sets keys that live as long as this process too.
    mutating func set(_ value: [UInt8], for other: Key) throws(Failure) {
        while true {
            do throws(StateError) {
                try client.set(value, for: other, livingAs: .process)
                return
            } catch {
                try reconnect(after: error)
            }
        }
    }

    /// - Returns: The token; nil if the queue must be looked at again, or the deadline passed.
    private mutating func tryOnce() throws(StateError) -> Int64? {
        var queue = LockQueue(try client.contenders(for: name))
        if queue[key.bytes] == nil {
            let value = LockQueue.value(isShared: isShared)
            try client.set(value, for: key, if: .absent, livingAs: .process)
            queue = LockQueue(try client.contenders(for: name))
        }
        guard let own = queue[key.bytes] else { return nil }
        guard let obstacle = queue.obstacle(for: key.bytes) else { return own.token }
        try awaitEnd(of: obstacle)
        return nil
    }

    /// Returns once the key of another contender is deleted, or its own.
    private mutating func awaitEnd(of other: LockQueue.Contender) throws(StateError) {
        let keys = [other.key, key.bytes]
        let watched = try keys.map { key throws(StateError) in try Pattern(literal: key) }
        // A connection of its own: the events of an earlier one do not matter any more.
        client = try invocation.newClient()
        _ = try client.watch(watched, snapshot: true)
        var present: Set<[UInt8]> = []
        while let event = try client.nextEvent(until: deadline) {
            switch event {
            case .piece(_, let changes), .commit(_, _, let changes):
                for change in changes {
                    if change.value == nil {
                        present.remove(change.key)
                    } else {
                        present.insert(change.key)
                    }
                }
                if case .commit = event, present.count < keys.count { return }
            case .synced: if present.count < keys.count { return }
            case .gap: present = []
            case .progress, .away, .current: continue
            }
        }
    }

    private mutating func giveUp() throws(Failure) {
        let other = try? LockQueue(client.contenders(for: name)).obstacle(for: key.bytes)
        _ = try? client.delete([Pattern(key)])
        let holder = other.map {
            ": process \($0.cause.pid) (\($0.cause.command)) is before this one"
        }
        Output.report("lock \(name) is not free\(holder ?? "")")
        throw .negative
    }

    private mutating func reconnect(after loss: StateError) throws(Failure) {
        guard ResumedWatch.isLoss(loss) else { throw .refused(loss) }
        Output.report("\(loss.message); waiting for the daemon")
        var backOff = BackOff(first: .milliseconds(20), last: .seconds(1))
        while try Pause.rest(backOff.next(), until: deadline, needsReader: false) {
            do throws(StateError) {
                client = try invocation.newClient(until: deadline)
                return
            } catch {
                guard ResumedWatch.isLoss(error) else { throw .refused(error) }
            }
        }
        throw .negative
    }
}
