import StateSystem

/// One result, put by one thread and waited for by another.
package final class Answer: Sendable {
    private let result = StateLock<Result<Int64, StateError>?>(nil)
    private let semaphore = BlockingSemaphore()

    package init() {}

    package func put(_ result: Result<Int64, StateError>) {
        self.result.withLock { $0 = result }
        semaphore.signal()
    }

    package func wait() -> Result<Int64, StateError> {
        semaphore.wait()
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("an answer is signalled before it is put")
        }
        return result
    }
}
