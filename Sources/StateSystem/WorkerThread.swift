import CLinux
import Glibc

/// One thread with a name, started once and joined.
package final class WorkerThread: Sendable {
    private let name: String
    private let handle = StateLock<pthread_t?>(nil)

    package init(name: String) { self.name = name }

    /// A thread that nobody joined ends by itself and frees its resources.
    deinit { detach() }

    /// Runs `body` on the thread.
    package func start(_ body: @escaping @Sendable () -> Void) {
        let context = Unmanaged.passRetained(Body(name: name, run: body)).toOpaque()
        var thread = pthread_t()
        let code = pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
                clinux_name_thread(body.name)
                body.run()
                return nil
            },
            context
        )
        precondition(code == 0, "pthread_create: \(String(cString: strerror(code)))")
        let started = thread
        handle.withLock { $0 = started }
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
