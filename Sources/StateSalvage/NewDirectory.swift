import CLinux
import Glibc
import StateEngine

/// The directory of a new store, and the files that were made in it.
///
/// Files are removed through its descriptor: its path may lead to another directory by then.
final class NewDirectory {
    let path: String
    /// Whether this process has made it.
    let isOwn: Bool
    let descriptor: Int32

    /// Makes the directory, or opens one that exists.
    ///
    /// Only the kernel knows who is first, so nobody looks whether there is one before.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - isNew: Makes it, and refuses anything that exists at `path`, also a link.
    /// - Throws: ``StateError/Code/storage`` if it exists, or cannot be made or opened.
    init(path: String, isNew: Bool) throws(StateError) {
        self.path = path
        isOwn = isNew
        if isNew, mkdir(path, 0o700) != 0 {
            throw errno == EEXIST
                ? StateError(.storage, "\(path) exists: a backup is restored into a new directory")
                : StateError(.storage, "\(path) cannot be created: \(lastSystemError())")
        }
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (isOwn ? O_NOFOLLOW : 0)
        descriptor = open(path, flags)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(path) cannot be opened: \(lastSystemError())")
        }
    }

    deinit { close(descriptor) }

    /// If a signal ends the process, it removes these files, these directories of files, and the directory
    /// itself if it is its own.
    func removeOnSignal(_ names: [String], directories: [String] = []) {
        clinux_forget_drafts()
        for name in names { clinux_draft(descriptor, name, 0) }
        for name in directories { clinux_draft(descriptor, name, 2) }
        if isOwn { clinux_draft(AT_FDCWD, path, 1) }
    }

    /// Removes files that this process made.
    func remove(_ names: [String]) {
        for name in names { unlinkat(descriptor, name, 0) }
    }

    /// Removes directories of files that this process made.
    func remove(directories names: [String]) {
        for name in names { _ = clinux_remove_directory(descriptor, name) }
    }

    /// Removes the directory if this process made it and others have put nothing into it.
    func removeIfOwn() {
        if isOwn, isInPlace { rmdir(path) }
    }

    /// Gives a file its name, unless that exists.
    ///
    /// - Returns: Whether it has it; if not, errno says why.
    func rename(_ old: String, _ new: String) -> Bool {
        let flags = UInt32(CLINUX_RENAME_NOREPLACE)
        if clinux_rename(descriptor, old, descriptor, new, flags) == 0 { return true }
        // Some file systems cannot do it.
        return errno == EINVAL && renameat(descriptor, old, descriptor, new) == 0
    }

    /// Whether the path still leads to it.
    private var isInPlace: Bool {
        var (opened, found) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && stat(path, &found) == 0
            && opened.st_dev == found.st_dev && opened.st_ino == found.st_ino
    }

    /// Makes the names of its files durable.
    func sync() -> Bool { fsync(descriptor) == 0 }

    /// Makes its own name durable.
    ///
    /// - Throws: ``StateError/Code/storage``, also if the directory was moved meanwhile.
    func syncName() throws(StateError) {
        guard isInPlace else {
            throw StateError(.storage, "\(path) was moved or replaced by another process")
        }
        let parent = openat(descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if parent >= 0 { close(parent) } }
        // A parent that may only be passed through cannot be opened.
        let isSynced =
            parent >= 0 ? fsync(parent) == 0 : clinux_sync_file_system(descriptor) == 0
        guard isSynced else {
            throw StateError(.storage, "\(path) cannot be synced: \(lastSystemError())")
        }
    }
}
