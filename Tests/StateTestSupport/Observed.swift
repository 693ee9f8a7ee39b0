import Glibc

/// A value under a lock, for whose change a thread may wait until a deadline.
package final class Observed<Value>: @unchecked Sendable {
    // Under the lock; the kernel's objects may be used from any thread.
    private var value: Value
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init(_ value: Value) {
        self.value = value
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` with the value, alone, and wakes who waits.
    package func update<R>(_ body: (inout Value) throws -> R) rethrows -> R {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body(&value)
    }

    /// The value of now.
    package var current: Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return value
    }

    /// Waits until `condition` holds, for so many seconds at most.
    ///
    /// - Returns: Whether it held.
    package func wait(seconds: Int = 20, until condition: (Value) -> Bool) -> Bool {
        take(seconds: seconds) { condition($0) ? true : nil } ?? false
    }

    /// Waits until `condition` holds, for so many milliseconds at most.
    ///
    /// - Returns: Whether it held.
    package func wait(milliseconds: Int, until condition: (Value) -> Bool) -> Bool {
        take(milliseconds: milliseconds) { condition($0) ? true : nil } ?? false
    }

    /// Waits until `body` gives something, for so many seconds at most.
    package func take<R>(seconds: Int = 20, _ body: (inout Value) -> R?) -> R? {
        take(milliseconds: seconds * 1_000, body)
    }

    private func take<R>(milliseconds: Int, _ body: (inout Value) -> R?) -> R? {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        deadline.tv_nsec += milliseconds % 1_000 * 1_000_000
        deadline.tv_sec += milliseconds / 1_000 + deadline.tv_nsec / 1_000_000_000
        deadline.tv_nsec %= 1_000_000_000
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        while true {
            if let result = body(&value) { return result }
            if pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT {
                return body(&value)
            }
        }
    }
}
