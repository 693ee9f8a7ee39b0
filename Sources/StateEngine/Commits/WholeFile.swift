import CLinux
import StatePlatform

/// Replaces a file atomically and durably.
package enum WholeFile {
    /// Creates or replaces a file atomically.
    ///
    /// - Parameters:
    ///   - path: The file. The draft lies beside it, with a name that ends in `.new`.
    ///   - bytes: The new contents; only the user may read and write the file.
    /// - Throws: ``StateError/Code/storage``, naming the file and the reason; the former file is
    ///   unchanged. If the last sync of the directory failed, a crash may leave either.
    /// - Complexity: one write and two syncs.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(StateError) {
        let draft = path + ".new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failed(path) }
        defer { close(descriptor) }
        guard write(bytes, to: descriptor), clinux_sync(descriptor) == 0, rename(draft, path) == 0,
            syncDirectory(parent(of: path))
        else {
            let error = failed(path)
            unlink(draft)
            throw error
        }
    }

    /// Syncs the names in a directory.
    ///
    /// - Returns: Whether that succeeded; else the reason is in `errno`.
    package static func syncDirectory(_ path: String) -> Bool {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return false }
        let isSynced = clinux_sync(directory) == 0
        let code = errno
        close(directory)
        errno = code
        return isSynced
    }

    /// A write may end early: the next one reports why.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                StatePlatform.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func parent(of path: String) -> String {
        let slash = path.lastIndex(of: "/")
        return slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }

    private static func failed(_ path: String) -> StateError {
        StateError(.storage, "\(path) cannot be written: \(lastSystemError())")
    }
}
