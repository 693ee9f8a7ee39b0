import CLinux
import StatePlatform
import StateSystem

/// One syncfs(2), on a thread of its own.
///
/// It writes whatever anybody has written to the file system, and so takes as long as they like:
/// whoever waits for it must not be who commits. One sync(2), which every user may call, does the
/// same to the disk.
final class FileSystemSync: Sendable {
    private final class Outcome: Sendable {
        /// 0, or an error number; nil while it runs.
        let code = StateLock<Int32?>(nil)
        let end = BlockingSemaphore()
    }

    private let outcome = Outcome()
    private let thread = WorkerThread(name: "sync")

    /// Begins it.
    ///
    /// - Parameters:
    ///   - directory: A directory of the file system; it is open until the end.
    ///   - wake: Called at the end, on any thread.
    init(_ directory: FileTree.Directory, then wake: @escaping @Sendable () -> Void) {
        let outcome = outcome
        let body: @Sendable () -> Void = {
            let code = clinux_sync_file_system(directory.descriptor) == 0 ? 0 : errno
            outcome.code.withLock { $0 = code }
            outcome.end.signal()
            wake()
        }
        if !thread.tryStart(body) { body() }
    }

    /// 0, or the error number; nil while it runs.
    var code: Int32? { outcome.code.withLock { $0 } }

    /// Waits until it has ended, at most so many nanoseconds.
    func wait(nanoseconds: Int64) -> Int32? {
        if code == nil { outcome.end.wait(nanoseconds: nanoseconds) }
        return code
    }
}
