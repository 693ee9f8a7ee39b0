import StateSystem

/// One result, which is put once, and for which threads and tasks wait.
package final class Answer: Sendable {
    private enum Waiter: Sendable {
        case thread(BlockingSemaphore)
        case task(CheckedContinuation<Void, Never>)
    }

    private struct Contents {
        var result: Result<Int64, StateError>?
        var waiters: [Waiter] = []
    }

    private let contents = StateLock(Contents())

    package init() {}

    /// The result; nil until there is one.
    package var result: Result<Int64, StateError>? { contents.withLock { $0.result } }

    package func put(_ result: Result<Int64, StateError>) {
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

    /// Puts the result unless there is one.
    package func putFirst(_ result: Result<Int64, StateError>) {
        if self.result == nil { put(result) }
    }

    /// Waits until there is a result.
    @discardableResult
    package func wait() -> Result<Int64, StateError> {
        if let result { return result }
        let semaphore = BlockingSemaphore()
        if register(.thread(semaphore)) { semaphore.wait() }
        guard let result else { preconditionFailure("an answer is signalled before it is put") }
        return result
    }

    /// Waits until there is a result.
    package nonisolated(nonsending) func wait() async {
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
