#if TSAN

import StatePlatform

/// A lock and the value that it guards.
///
/// ThreadSanitizer understands it; for a contended `Mutex` it reports false races.
public struct StateLock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // The system's lock controls who may use the value: the proof of `@unchecked Sendable`.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    /// Guards `value`.
    public init(_ value: consuming sending Value) {
        lock = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ERRORCHECK))
        pthread_mutex_init(lock, &attributes)
        pthread_mutexattr_destroy(&attributes)
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Runs `body` with exclusive access; recursive use ends the process.
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        let code = pthread_mutex_lock(lock)
        precondition(code == 0, "recursive call to lock a StateLock")
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }

    /// The same unless another thread has the lock: then it does nothing and returns nil.
    public borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
        guard pthread_mutex_trylock(lock) == 0 else { return nil }
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}

#else

public import Synchronization

/// A lock and the value that it guards: a `Mutex`.
///
/// Built with `-D TSAN` it is the system's lock, which ThreadSanitizer understands: for a contended
/// `Mutex` it reports false races (Swift 6.3).
@frozen
public struct StateLock<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>

    /// Guards `value`.
    @inlinable
    public init(_ value: consuming sending Value) { mutex = Mutex(value) }

    /// Runs `body` with exclusive access; recursive use ends the process.
    @inlinable
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        try mutex.withLock(body)
    }

    /// The same unless another thread has the lock: then it does nothing and returns nil.
    @inlinable
    public borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
        try mutex.withLockIfAvailable(body)
    }
}

#endif
