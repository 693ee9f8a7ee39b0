import Glibc

extension FileBacking {
    /// Writes the files of all changes beside their targets, syncs them, renames them and syncs the directories.
    ///
    /// - Throws: ``EditedMeanwhile``, where others changed one of the files or something else is in its place. ``StateError``
    ///   with ``StateError/Code/noSpace`` or ``StateError/Code/readOnly``: every file is as it was, unless the message begins
    ///   with `outcome unknown`.
    /// - Complexity: O(*n*) in the bytes of the values, with one sync for each file and each directory, and two for a journal
    ///   where there are several files.
    public func commit(_ batch: borrowing CommitBatch) throws {
        guard let tree, unfinished == nil else {
            throw StateError(.readOnly, "\(directory) is not open: nothing was committed")
        }
        var commit = try FileCommit(batch)
        do {
            try meetEdits(&commit, in: tree)
            try stage(&commit, in: tree)
            try publish(commit, in: tree)
        } catch let failure as FileFailure {
            throw failure.refusal
        }
        finish(commit)
    }

    // MARK: Before anything is written

    /// Looks whether the files are those that the entries are of.
    private func meetEdits(_ commit: inout FileCommit, in tree: FileTree) throws {
        var edited: [FilePath] = []
        let deleted = commit.deleted
        for index in commit.changes.indices {
            let path = commit.changes[index].path
            let status = try tree.status(path)
            commit.changes[index].old = status
            if status?.stamp == known[path] { continue }
            // A directory makes way where all that is in it goes.
            if status?.isDirectory ?? false, known[path] == nil,
                try isEmptied(path, by: deleted, in: tree)
            {
                commit.changes[index].old = nil
                continue
            }
            edited.append(path)
        }
        guard edited.isEmpty else { try adopt(edited, in: tree) }
        meetingCount = 0
    }

    /// Whether everything in a directory is among `deleted`, and there is something.
    private func isEmptied(
        _ path: FilePath,
        by deleted: Set<FilePath>,
        in tree: FileTree
    ) throws(FileFailure) -> Bool {
        var isEmptied = false
        var isFirst = true
        try tree.forEachName(in: path) { (name, isDirectory) throws(FileFailure) in
            let below = path.appending(name)
            guard isEmptied || isFirst else { return }
            isFirst = false
            isEmptied =
                isDirectory
                ? try self.isEmptied(below, by: deleted, in: tree) : deleted.contains(below)
        }
        return isEmptied
    }

    /// Takes what others did below what is being committed, which is then done again on it.
    func adopt(_ paths: [FilePath], in tree: FileTree) throws -> Never {
        meetingCount += 1
        guard meetingCount <= 16 else {
            meetingCount = 0
            throw StateError(
                .conflict,
                "\(paths[0]) is changed again and again by others: nothing was committed"
            )
        }
        for path in paths {
            awaitRest(path, in: tree)
            if let change = look(at: path, isWritten: true, in: tree) {
                met.removeAll { $0.key == change.key }
                met.append(change)
                try tree.directory(path.parent).sync()
            } else if let status = try tree.status(path), status.isDirectory, known[path] == nil {
                refuse(path, StateError(.storage, "\(path) is a directory, not a file"))
            }
        }
        throw EditedMeanwhile()
    }

    /// Waits until a file was left alone for the quiet time, for a second at most.
    private func awaitRest(_ path: FilePath, in tree: FileTree) {
        for _ in 0..<10 {
            guard let status = try? tree.status(path), status.isRegular else { return }
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            let age = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) - status.changed
            let rest = FileWatcher.quietNanoseconds - age
            guard rest > 0 else { return }
            var pause = timespec(tv_sec: 0, tv_nsec: Int(min(rest, FileWatcher.quietNanoseconds)))
            nanosleep(&pause, nil)
        }
    }

    // MARK: The new files

    /// Writes the new files under other names; where one cannot be written, none is left.
    private func stage(_ commit: inout FileCommit, in tree: FileTree) throws {
        let deleted = commit.deleted
        do {
            for change in commit.changes {
                guard let value = change.adopted.value else {
                    if let old = change.old {
                        commit.steps.append(FileStep(target: change.path, before: old.stamp))
                    }
                    continue
                }
                let (parent, obstacle) = try tree.nearestDirectory(to: change.path.parent)
                if let obstacle, !deleted.contains(obstacle) { try adopt([obstacle], in: tree) }
                let path = parent.appending(temporaryName(in: tree))
                let stamp = try value.withUnsafeBytes {
                    try write($0, to: path, for: change, in: tree)
                }
                commit.steps.append(
                    FileStep(
                        target: change.path,
                        before: change.old?.stamp,
                        staged: FileStep.Staged(path: path, stamp: stamp)
                    )
                )
            }
        } catch {
            drop(commit, in: tree)
            throw error
        }
    }

    private func write(
        _ value: Bytes,
        to path: FilePath,
        for change: FileCommit.Change,
        in tree: FileTree
    ) throws -> FileStamp {
        do throws(FileFailure) {
            return try tree.write(value, to: path, like: change.old, mode: newFileMode)
        } catch {
            guard error.isOwnership else { throw error }
            // Its writer alone is refused when it is done again.
            refuse(change.path, StateError(.noPermission, error.sentence))
            throw EditedMeanwhile()
        }
    }

    func drop(_ commit: FileCommit, in tree: FileTree) {
        for step in commit.steps {
            if let staged = step.staged { try? tree.remove(staged.path) }
        }
    }
}
