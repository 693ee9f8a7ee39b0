import Glibc
package import StateEngine

/// Directories of the daemon: made for the owner only.
package enum Directory {
    /// Makes `path` and what is missing above it, with mode 0700; what exists is left as it is.
    ///
    /// - Throws: an error with `code`, naming the directory that could not be made.
    package static func make(
        _ path: String,
        failingWith code: StateError.Code = .err
    ) throws(StateError) {
        guard isMade(path) else {
            throw StateError(failed: "making the directory \(path)", code: code)
        }
    }

    /// Leaves the reason in errno where it could not be made.
    private static func isMade(_ path: String) -> Bool {
        if isMadeAlone(path) { return true }
        guard errno == ENOENT, let parent = parent(of: path), isMade(parent) else { return false }
        return isMadeAlone(path)
    }

    /// Another process that makes the same directory now is none the worse.
    private static func isMadeAlone(_ path: String) -> Bool {
        guard mkdir(path, 0o700) == 0 else { return errno == EEXIST && isDirectory(path) }
        // What is stored in it is only as durable as its name.
        let above = parent(of: path) ?? (path.hasPrefix("/") ? "/" : ".")
        return WholeFile.syncDirectory(above)
    }

    /// Makes the directory that `path` lies in.
    package static func makeParent(of path: String) throws(StateError) {
        if let parent = parent(of: path) { try make(parent) }
    }

    /// What stands before the last segment; nil where that is the root or the working directory.
    private static func parent(of path: String) -> String? {
        let segments = path.split(separator: "/")
        guard segments.count > 1 else { return nil }
        let parent = segments.dropLast().joined(separator: "/")
        return path.hasPrefix("/") ? "/" + parent : parent
    }

    /// Leaves errno at ENOTDIR where `path` is something else.
    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { return true }
        errno = ENOTDIR
        return false
    }
}

extension StateError {
    /// A system call failed: what was being done, and the kernel's reason (errno).
    package init(failed action: String, code: Code = .err) {
        self.init(code, "\(action) failed: \(String(cString: strerror(errno)))")
    }
}
