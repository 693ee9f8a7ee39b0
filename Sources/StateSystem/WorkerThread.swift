import CLinux
import StatePlatform

/// One thread with a name, started once and joined.
package final class WorkerThread: Sendable {
    private let name: String
    private let stackByteCount: Int?
    private let handle = StateLock<UInt?>(nil)
    /// A child that was forked has no other threads.
    private let home = HomeProcess()

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
        var thread: UInt = 0
        let code = clinux_start_thread(
            &thread,
            { context in
                guard let context else { return nil }
                let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
                clinux_name_thread(body.name)
                body.run()
                return nil
            },
            context,
            stackByteCount ?? 0
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
        handle.withLock { handle in handle == clinux_current_thread() }
    }

    /// Waits until the thread has ended; does nothing if it was not started or was joined before, or in a
    /// child that was forked.
    package func join() {
        let thread = handle.withLock { handle in
            let thread = handle
            handle = nil
            return thread
        }
        if let thread, home.isCurrent { clinux_join_thread(thread) }
    }

    /// Lets the thread end by itself, without a join.
    package func detach() {
        let thread = handle.withLock { handle in
            defer { handle = nil }
            return handle
        }
        if let thread, home.isCurrent { clinux_detach_thread(thread) }
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
    private let semaphore = UnsafeMutablePointer<clinux_semaphore>.allocate(capacity: 1)

    package init() { clinux_make_semaphore(semaphore) }

    deinit {
        clinux_end_semaphore(semaphore)
        semaphore.deallocate()
    }

    package func signal() { clinux_signal(semaphore) }

    package func wait() { wait(nanoseconds: nil) }

    /// Waits for a signal, or until the time has passed; nil: forever.
    package func wait(nanoseconds: Int64?) {
        clinux_wait(semaphore, nanoseconds.map { max($0, 0) } ?? -1)
    }
}
