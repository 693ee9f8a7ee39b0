import CLinux
import Glibc

/// One thread with a name, started once and joined.
package final class WorkerThread: Sendable {
    private let name: String
    private let stackByteCount: Int?
    private let handle = StateLock<pthread_t?>(nil)

    /// - Parameters:
    ///   - name: At most 15 bytes.
    ///   - stackByteCount: Nil for the system's default, usually 8 MiB of address space.
    package init(name: String, stackByteCount: Int? = nil) {
        self.name = name
        self.stackByteCount = stackByteCount
    }

    /// A thread that nobody joined ends by itself and frees its resources.
    deinit { detach() }

    /// Runs `body` on the thread; ends the process if no thread can be started.
    package func start(_ body: @escaping @Sendable () -> Void) {
        precondition(
            tryStart(body),
            "no thread can be started: \(String(cString: strerror(errno)))"
        )
    }

    /// Runs `body` on the thread.
    ///
    /// - Returns: False if no thread can be started; `errno` has the reason.
    package func tryStart(_ body: @escaping @Sendable () -> Void) -> Bool {
        let context = Unmanaged.passRetained(Body(name: name, run: body)).toOpaque()
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackByteCount { pthread_attr_setstacksize(&attributes, stackByteCount) }
        let code = pthread_create(
            &thread,
            &attributes,
            { context in
                guard let context else { return nil }
                let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
                clinux_name_thread(body.name)
                body.run()
                return nil
            },
            context
        )
        guard code == 0 else {
            Unmanaged<Body>.fromOpaque(context).release()
            errno = code
            return false
        }
        let started = thread
        handle.withLock { $0 = started }
        return true
    }

    /// Whether the caller is on it.
    package var isCurrent: Bool {
        handle.withLock { handle in handle.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Waits until the thread has ended; does nothing if it was not started or was joined before.
    package func join() {
        let thread = handle.withLock { handle in
            let thread = handle
            handle = nil
            return thread
        }
        if let thread { pthread_join(thread, nil) }
    }

    /// Lets the thread end by itself, without a join.
    package func detach() {
        let thread = handle.withLock { handle in
            defer { handle = nil }
            return handle
        }
        if let thread { pthread_detach(thread) }
    }

    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }
}

/// A counting semaphore (sem_overview(7)): a signal without a waiter makes no system call.
package final class BlockingSemaphore: @unchecked Sendable {
    // The kernel's object; its functions may be called from any thread.
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    package init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    package func signal() { sem_post(semaphore) }

    package func wait() { wait(nanoseconds: nil) }

    /// Waits for a signal, or until the time has passed; nil: forever.
    package func wait(nanoseconds: Int64?) {
        if let nanoseconds {
            clinux_wait(semaphore, nanoseconds)
        } else {
            while sem_wait(semaphore) != 0, errno == EINTR {}
        }
    }
}
