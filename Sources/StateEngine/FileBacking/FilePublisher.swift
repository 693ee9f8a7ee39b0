import CLinux
import StatePlatform

/// Carries out the steps of a commit: deletes, then renames, then fsync of each directory that was
/// touched.
///
/// Repeating all or some of the steps changes nothing, so a journal can be replayed. If somebody
/// else puts a file in place between the check and the rename, it is put back: it comes after what
/// was written.
struct FilePublisher: ~Copyable {
    private let tree: FileTree
    /// Whether a step that fails is left out; otherwise it ends the others.
    private let leavesOut: Bool
    /// Whether anything was changed under the name of a key.
    private(set) var hasBegun = false
    /// Targets that others have changed meanwhile.
    private(set) var edited: [FilePath] = []
    /// Targets that are no longer files, and others that were left out; their new files are
    /// removed.
    private(set) var obstructed: [(path: FilePath, failure: FileFailure)] = []
    private var touched: Set<FilePath> = []

    /// Begins with no steps taken.
    init(_ tree: FileTree, leavesOut: Bool = false) {
        self.tree = tree.walk()
        self.leavesOut = leavesOut
    }

    /// - Throws: ``FileFailure``; the steps taken so far stay, and all may be repeated.
    mutating func take(_ steps: [FileStep]) throws(FileFailure) {
        // Order matters: a file may be replaced by a directory, and the reverse.
        for step in steps where step.staged == nil {
            do throws(FileFailure) { try remove(step) } catch  where leavesOut {
                obstructed.append((step.target, error))
            }
        }
        for step in steps {
            guard let staged = step.staged else { continue }
            do throws(FileFailure) { try place(staged, step) } catch  where leavesOut {
                obstructed.append((step.target, error))
                try? tree.remove(staged.path)
            }
        }
        try syncDirectories()
    }

    // MARK: Deletes

    private mutating func remove(_ step: FileStep) throws(FileFailure) {
        let target = step.target
        touched.insert(target.parent)
        guard let status = try tree.status(target) else { return }
        guard status.stamp == step.before else {
            edited.append(target)
            return
        }
        let parent = try tree.directory(target.parent)
        let aside = tree.temporaryName()
        guard
            rename(parent, target.name, parent, aside, CLINUX_RENAME_NOREPLACE) == 0
                || errno == EINVAL && rename(parent, target.name, parent, aside, 0) == 0
        else {
            throw FileFailure("renameat2", target)
        }
        hasBegun = true
        if try FileTree.status(aside, in: parent)?.stamp != step.before {
            edited.append(target)
            if rename(parent, aside, parent, target.name, CLINUX_RENAME_NOREPLACE) == 0 { return }
        }
        try tree.remove(target.parent.appending(aside))
        removeEmptyDirectories(from: target.parent)
    }

    /// Removes the directories that a delete left empty, but not the root.
    private mutating func removeEmptyDirectories(from path: FilePath) {
        for directory in [path] + path.ancestors where !directory.isRoot {
            guard let parent = try? tree.directory(directory.parent) else { return }
            let code = FilePath.withCString(directory.name) {
                unlinkat(parent.descriptor, $0, AT_REMOVEDIR)
            }
            guard code == 0 else { return }
            tree.forget(directory)
            touched.insert(directory.parent)
        }
    }

    // MARK: Renames

    private mutating func place(_ staged: FileStep.Staged, _ step: FileStep) throws(FileFailure) {
        let target = step.target
        touched.formUnion([target.parent, staged.path.parent])
        guard let waiting = try tree.status(staged.path) else { return }
        if waiting.stamp == staged.stamp {
            do throws(FileFailure) {
                touched.formUnion(try tree.makeDirectories(target.parent))
                try swap(staged, step)
            } catch  where error.isObstacle {
                obstructed.append((target, error))
            }
        }
        // What is there now was displaced.
        try tree.remove(staged.path)
    }

    private mutating func swap(_ staged: FileStep.Staged, _ step: FileStep) throws(FileFailure) {
        var expected = step.before
        var mine: FileStamp? = staged.stamp
        // A user who edits faster than this eight times in a row wins.
        for _ in 0..<8 {
            let displaced = try exchange(staged.path, step.target, expected)
            hasBegun = true
            guard displaced != expected, displaced != nil else { return }
            if edited.last != step.target { edited.append(step.target) }
            expected = mine
            mine = displaced
        }
    }

    /// Exchanges the file at `source` with that at `target`, if there is one.
    ///
    /// - Returns: The stamp of the file that was at `target`.
    private func exchange(
        _ source: FilePath,
        _ target: FilePath,
        _ expected: FileStamp?
    ) throws(FileFailure) -> FileStamp? {
        let from = try tree.directory(source.parent)
        let to = try tree.directory(target.parent)
        var present = expected == nil ? nil : try FileTree.status(target.name, in: to)
        for _ in 0..<8 {
            if present?.isDirectory ?? false { throw FileFailure("renameat2", target, EISDIR) }
            let flags = present == nil ? CLINUX_RENAME_NOREPLACE : CLINUX_RENAME_EXCHANGE
            if rename(from, source.name, to, target.name, flags) == 0 {
                return present == nil ? nil : try FileTree.status(source.name, in: from)?.stamp
            }
            // If the file system does not support flags, the last check has to do.
            if errno == EINVAL, rename(from, source.name, to, target.name, 0) == 0 {
                return present?.stamp
            }
            guard errno == EEXIST || errno == ENOENT else { throw FileFailure("renameat2", target) }
            present = try FileTree.status(target.name, in: to)
        }
        throw FileFailure("renameat2", target, EBUSY)
    }

    private func rename(
        _ from: FileTree.Directory,
        _ old: [UInt8],
        _ to: FileTree.Directory,
        _ new: [UInt8],
        _ flags: some BinaryInteger
    ) -> Int32 {
        let (source, target) = (from.descriptor, to.descriptor)
        return FilePath.withCString(old) { old in
            FilePath.withCString(new) { clinux_rename(source, old, target, $0, UInt32(flags)) }
        }
    }

    private func syncDirectories() throws(FileFailure) {
        for path in touched.sorted() {
            do throws(FileFailure) {
                try tree.directory(path).sync()
            } catch  where leavesOut && error.isUntrusted {
                // Its steps are left out.
            } catch  where error.code == ENOENT || error.code == ENOTDIR {
                // It was removed; its parent is among the touched directories.
            }
        }
    }
}
