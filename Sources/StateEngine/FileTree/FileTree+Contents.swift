import CLinux
import StatePlatform

extension FileTree {
    /// The contents of a file, if it did not change meanwhile.
    enum Contents {
        case value([UInt8], FileStatus)
        /// It was changed or replaced while it was read.
        case unstable
    }

    /// Reads the value in a file of at most `limit` bytes, and makes what was read durable; if
    /// `syncs` is false, it only begins to, for ``sync(_:as:)``.
    ///
    /// - Throws: ``StateError`` if it is not a regular file, too large, or cannot be read.
    func contents(
        of path: FilePath,
        limit: Int,
        syncs: Bool = true
    ) throws(StateError) -> Contents? {
        do {
            let parent = try directory(path.parent)
            guard let before = try FileTree.status(path.name, in: parent) else { return nil }
            guard before.isRegular else {
                throw StateError(.storage, "\(path) is \(before.kind), not a file")
            }
            // A user who may not read a file can still link it here, if the kernel allows that.
            guard before.linkCount == 1 else {
                throw StateError(
                    .storage,
                    "\(path) is one of \(before.linkCount) hard links to a file: "
                        + "replace it by a copy"
                )
            }
            guard before.stamp.byteCount <= Int64(limit + form.extraByteCount) else {
                throw FileTree.tooBig(path, Int(before.stamp.byteCount), limit)
            }
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
            let file = FilePath.withCString(path.name) { openat(parent.descriptor, $0, flags) }
            guard file >= 0 else {
                if errno == ENOENT || errno == ELOOP { return .unstable }
                throw FileFailure("openat", path)
            }
            defer { close(file) }
            let contents = try FileTree.readStable(file, path, before, syncs: syncs)
            guard case .value(let bytes, let status) = contents else { return contents }
            let value = form.value(bytes)
            guard value.count <= limit else { throw FileTree.tooBig(path, value.count, limit) }
            return .value(value, status)
        } catch let failure as FileFailure {
            throw StateError(.storage, failure.sentence)
        } catch {
            throw error as? StateError ?? StateError(.storage, "\(path): \(error)")
        }
    }

    private static func tooBig(_ path: FilePath, _ count: Int, _ limit: Int) -> StateError {
        StateError(.tooBig, "\(path) has \(count) bytes; the limit is \(limit)")
    }

    private static func readStable(
        _ file: Int32,
        _ path: FilePath,
        _ before: FileStatus,
        syncs: Bool
    ) throws(FileFailure) -> Contents {
        // Order matters: no contents are read of a file that was put there after the check.
        guard try FileTree.isUnchanged(file, path, before) else { return .unstable }
        var bytes = [UInt8](repeating: 0, count: Int(before.stamp.byteCount) + 1)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes {
                read(file, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            if got == 0 { break }
            if got > 0 {
                count += got
            } else if errno != EINTR {
                throw FileFailure("read", path)
            }
        }
        if !syncs {
            clinux_begin_writing(file)
        } else if clinux_sync(file) != 0 {
            throw FileFailure("fsync", path)
        }
        guard try FileTree.isUnchanged(file, path, before), count == Int(before.stamp.byteCount)
        else { return .unstable }
        bytes.removeLast()
        return .value(bytes, before)
    }

    /// Makes a file durable that was read with a status.
    ///
    /// - Returns: False if it was changed or replaced since.
    func sync(_ path: FilePath, as read: FileStatus) throws(FileFailure) -> Bool {
        let parent: Directory
        do throws(FileFailure) { parent = try directory(path.parent) } catch
            where error.code == ENOENT || error.code == ENOTDIR
        { return false }
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let file = FilePath.withCString(path.name) { openat(parent.descriptor, $0, flags) }
        guard file >= 0 else {
            if errno == ENOENT || errno == ELOOP { return false }
            throw FileFailure("openat", path)
        }
        defer { close(file) }
        guard try FileTree.isUnchanged(file, path, read) else { return false }
        guard clinux_sync(file) == 0 else { throw FileFailure("fsync", path) }
        return true
    }

    /// Whether an open file is the one that was checked, unchanged since; its link count is covered
    /// by `changed`.
    private static func isUnchanged(
        _ file: Int32,
        _ path: FilePath,
        _ before: FileStatus
    ) throws(FileFailure) -> Bool {
        let now = try FileStatus(of: file, path)
        return now.stamp == before.stamp && now.changed == before.changed && now.isRegular
    }

    /// Writes a new file, and makes it durable.
    ///
    /// It gets mode and owner that ``form`` names, else those of the file `old`, except setuid,
    /// setgid and sticky bits: those were granted for other contents. An owner or a group that may
    /// not read the key is not kept. `mode` is for a file that
    /// replaces none.
    ///
    /// - Returns: The stamp of the file.
    /// - Throws: ``FileFailure``; the file is removed then.
    func write(
        _ value: Bytes,
        to path: FilePath,
        like old: FileStatus?,
        mode: mode_t
    ) throws(FileFailure) -> FileStamp {
        let parent = try directory(path.parent)
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let file = FilePath.withCString(path.name) { openat(parent.descriptor, $0, flags, 0o600) }
        guard file >= 0 else { throw FileFailure("openat", path) }
        defer { close(file) }
        do throws(FileFailure) {
            if let contents = form.contents(of: value) {
                try contents.withUnsafeBufferPointer { (bytes) throws(FileFailure) in
                    try FileTree.fill(file, with: Bytes(bytes), path)
                }
            } else {
                try FileTree.fill(file, with: value, path)
            }
            try protect(file, like: old, mode: mode, path)
            guard clinux_sync(file) == 0 else { throw FileFailure("fsync", path) }
            return try FileStatus(of: file, path).stamp
        } catch {
            _ = FilePath.withCString(path.name) { unlinkat(parent.descriptor, $0, 0) }
            throw error
        }
    }

    private static func fill(
        _ file: Int32,
        with value: Bytes,
        _ path: FilePath
    ) throws(FileFailure) {
        var written = 0
        while written < value.count {
            let count = StatePlatform.write(
                file,
                value.baseAddress.map { $0 + written },
                value.count - written
            )
            if count >= 0 {
                written += count
            } else if errno != EINTR {
                throw FileFailure("write", path)
            }
        }
    }

    private func protect(
        _ file: Int32,
        like old: FileStatus?,
        mode: mode_t,
        _ path: FilePath
    ) throws(FileFailure) {
        if form.readers != nil { try FileTree.removeLists(of: file, path) }
        // Order matters: changing the owner clears bits of the mode.
        if old != nil || form.uid != nil || form.gid != nil || form.readers != nil {
            let own = try FileStatus(of: file, path)
            let uid = form.owner(replacing: old) ?? own.uid
            let gid = form.group(replacing: old, made: own.gid)
            if own.uid != uid || own.gid != gid {
                guard fchown(file, uid, gid) == 0 else { throw FileFailure("fchown", path) }
            }
        }
        guard fchmod(file, form.permissions ?? old.map { $0.mode & 0o777 } ?? mode) == 0 else {
            throw FileFailure("fchmod", path)
        }
    }

    /// Gives a file to nobody who may not read its key: it gets an owner, a group and permission
    /// bits as if it were written anew, and no further bits.
    func restrict(_ path: FilePath) throws(FileFailure) {
        let parent = try directory(path.parent)
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let file = FilePath.withCString(path.name) { openat(parent.descriptor, $0, flags) }
        guard file >= 0 else { throw FileFailure("openat", path) }
        defer { close(file) }
        let old = try FileStatus(of: file, path)
        guard old.isRegular, old.linkCount == 1 else { return }
        let uid = form.owner(replacing: old) ?? geteuid()
        let gid = form.group(replacing: old, made: old.gid)
        let mode = old.mode & 0o777 & (form.permissions ?? 0o600)
        guard old.uid != uid || old.gid != gid || old.mode & 0o7777 != mode else { return }
        try FileTree.removeLists(of: file, path)
        // Order matters: changing the owner clears bits of the mode.
        if old.uid != uid || old.gid != gid {
            guard fchown(file, uid, gid) == 0 else { throw FileFailure("fchown", path) }
        }
        guard fchmod(file, mode) == 0 else { throw FileFailure("fchmod", path) }
    }

    /// Removes the access lists that a new file or directory has from its directory: whoever owns
    /// that may have let others read what is made in it.
    static func removeLists(of descriptor: Int32, _ path: FilePath) throws(FileFailure) {
        guard clinux_remove_access_lists(descriptor) == 0 else {
            throw FileFailure("fremovexattr", path)
        }
    }

    /// Removes a file, which may be gone already.
    func remove(_ path: FilePath) throws(FileFailure) {
        let parent = try directory(path.parent)
        let code = FilePath.withCString(path.name) { unlinkat(parent.descriptor, $0, 0) }
        guard code == 0 || errno == ENOENT else { throw FileFailure("unlinkat", path) }
    }
}
