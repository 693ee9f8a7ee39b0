import CLinux
import StateEngine

/// The answer to one commit, put once and waited for by threads and tasks.
final class Ticket: Sendable {
    private enum Waiter: Sendable {
        case thread(BlockingSemaphore)
        case task(CheckedContinuation<Void, Never>)
    }

    private struct Contents {
        var result: Result<Int64, StateError>?
        var waiters: [Waiter] = []
    }

    private let contents = StateLock(Contents())

    /// The answer; nil as long as there is none.
    var result: Result<Int64, StateError>? { contents.withLock { $0.result } }

    func put(_ result: Result<Int64, StateError>) {
        let waiters = contents.withLock { contents in
            contents.result = result
            defer { contents.waiters = [] }
            return contents.waiters
        }
        for waiter in waiters {
            switch waiter {
            case .thread(let semaphore): semaphore.signal()
            case .task(let continuation): continuation.resume()
            }
        }
    }

    /// Puts the answer unless there is one.
    func putFirst(_ result: Result<Int64, StateError>) {
        if self.result == nil { put(result) }
    }

    /// Waits until there is an answer.
    func wait() {
        guard result == nil else { return }
        let semaphore = BlockingSemaphore()
        if register(.thread(semaphore)) { semaphore.wait() }
    }

    /// The same for a thread that commits meanwhile what waits in `keyspace`, where nobody else does.
    ///
    /// While it tells of commits it is nobody's: in no scope, and led to by no change.
    func wait(committingIn keyspace: (any WaitableKeyspace)?) {
        guard let keyspace else { return wait() }
        let depth = clinux_depth()
        clinux_set_depth(0)
        if StateScope.current == nil {
            keyspace.commitOnCaller()
        } else {
            StateScope.$current.withValue(nil) { keyspace.commitOnCaller() }
        }
        clinux_set_depth(depth)
        wait()
    }

    /// Waits until there is an answer.
    nonisolated(nonsending) func wait() async {
        await withCheckedContinuation { continuation in
            if !register(.task(continuation)) { continuation.resume() }
        }
    }

    private func register(_ waiter: Waiter) -> Bool {
        contents.withLock { contents in
            guard contents.result == nil else { return false }
            contents.waiters.append(waiter)
            return true
        }
    }
}
