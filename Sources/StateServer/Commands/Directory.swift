import Glibc
package import StateEngine

/// Creates directories of the daemon, for the owner only.
package enum Directory {
    /// Creates `path` and missing directories above it, with mode 0700; existing ones do not
    /// change.
    ///
    /// - Throws: an error with `code`, naming the directory that could not be created.
    package static func make(
        _ path: String,
        failingWith code: StateError.Code = .err
    ) throws(StateError) {
        guard isMade(path) else {
            throw StateError(failed: "creating the directory \(path)", code: code)
        }
    }

    /// Sets errno if it could not be created.
    private static func isMade(_ path: String) -> Bool {
        if isMadeAlone(path) { return true }
        guard errno == ENOENT, let parent = parent(of: path), isMade(parent) else { return false }
        return isMadeAlone(path)
    }

    /// Another process may create the same directory at the same time.
    private static func isMadeAlone(_ path: String) -> Bool {
        guard mkdir(path, 0o700) == 0 else { return errno == EEXIST && isDirectory(path) }
        // The content is only as durable as the directory's name.
        let above = parent(of: path) ?? (path.hasPrefix("/") ? "/" : ".")
        return WholeFile.syncDirectory(above)
    }

    /// Creates the directory that contains `path`.
    package static func makeParent(of path: String) throws(StateError) {
        if let parent = parent(of: path) { try make(parent) }
    }

    /// The path without the last segment; nil if that is the root or the working directory.
    private static func parent(of path: String) -> String? {
        let segments = path.split(separator: "/")
        guard segments.count > 1 else { return nil }
        let parent = segments.dropLast().joined(separator: "/")
        return path.hasPrefix("/") ? "/" + parent : parent
    }

    /// Sets errno to ENOTDIR if `path` is not a directory.
    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { return true }
        errno = ENOTDIR
        return false
    }
}

extension StateError {
    /// A system call failed: the action, and the kernel's reason (errno).
    package init(failed action: String, code: Code = .err) {
        self.init(code, "\(action) failed: \(String(cString: strerror(errno)))")
    }
}
