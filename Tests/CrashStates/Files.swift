import Glibc

/// What the checker itself does to files.
enum Files {
    static func contents(of path: String) throws(Failure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw .ofCall("open \(path)") }
        defer { close(descriptor) }
        var status = stat()
        fstat(descriptor, &status)
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let part = bytes.withUnsafeMutableBytes {
                pread(
                    descriptor,
                    $0.baseAddress?.advanced(by: count),
                    $0.count - count,
                    off_t(count)
                )
            }
            guard part > 0 else { break }
            count += part
        }
        return count == bytes.count ? bytes : Array(bytes[..<count])
    }

    static func write(_ text: String, to path: String) throws(Failure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .ofCall("open \(path)") }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            throw .ofCall("write \(path)")
        }
    }

    /// The names in a directory, but `.` and `..`.
    static func names(in path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Paths of all files below a directory, without it before them.
    static func files(below path: String) -> [String] {
        names(in: path).flatMap { name in
            isDirectory("\(path)/\(name)")
                ? files(below: "\(path)/\(name)").map { "\(name)/\($0)" } : [name]
        }
    }

    /// Removes what is in a directory.
    static func empty(_ path: String) {
        for name in names(in: path) { remove("\(path)/\(name)") }
    }

    static func remove(_ path: String) {
        if isDirectory(path) {
            empty(path)
            rmdir(path)
        } else {
            unlink(path)
        }
    }

    static func copy(_ path: String, to other: String) throws(Failure) {
        if isDirectory(path) {
            mkdir(other, 0o700)
            for name in names(in: path) { try copy("\(path)/\(name)", to: "\(other)/\(name)") }
        } else if let bytes = try? contents(of: path) {
            let descriptor = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            _ = Glibc.write(descriptor, bytes, bytes.count)
            close(descriptor)
        }
    }
}
