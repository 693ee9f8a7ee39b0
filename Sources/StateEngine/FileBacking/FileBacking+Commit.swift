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
        guard let files, unfinished == nil else {
            throw StateError(.readOnly, "\(directory) is not open: nothing was committed")
        }
        var commit = try FileCommit(batch)
        do {
            try meetEdits(&commit, in: files)
            try stage(&commit, in: files)
            try publish(commit, in: files)
        } catch let failure as FileFailure {
            throw failure.refusal
        }
        finish(commit, in: files)
    }

    // MARK: Before anything is written

    /// Looks whether the files are those that the entries are of.
    private func meetEdits(_ commit: inout FileCommit, in files: FileDirectory) throws {
        var edited: [FilePath] = []
        let deleted = commit.deleted
        for index in commit.changes.indices {
            let path = commit.changes[index].path
            let status = try files.tree.status(path)
            commit.changes[index].old = status
            if status?.stamp == files.known[path]?.stamp { continue }
            // A directory makes way where all that is in it goes.
            if status?.isDirectory ?? false, files.known[path] == nil,
                try files.isEmptied(path, by: deleted)
            {
                commit.changes[index].old = nil
                continue
            }
            edited.append(path)
        }
        guard edited.isEmpty else { try adopt(edited, in: files) }
        meetingCount = 0
    }

    /// Takes what others did below what is being committed, which is then done again on it.
    func adopt(_ paths: [FilePath], in files: FileDirectory) throws -> Never {
        meetingCount += 1
        guard meetingCount <= 16 else {
            meetingCount = 0
            throw StateError(
                .conflict,
                "\(paths[0]) is changed again and again by others: nothing was committed"
            )
        }
        for path in paths {
            files.awaitRest(path)
            if let change = look(at: path, isWritten: true, in: files) {
                met.removeAll { $0.key == change.key }
                met.append(change)
                try files.tree.directory(path.parent).sync()
            } else if let status = try files.tree.status(path), status.isDirectory,
                files.known[path] == nil
            {
                files.refuse(path, StateError(.storage, "\(path) is a directory, not a file"))
            }
        }
        throw EditedMeanwhile()
    }

    // MARK: The new files

    /// Writes the new files under other names; where one cannot be written, none is left.
    private func stage(_ commit: inout FileCommit, in files: FileDirectory) throws {
        let tree = files.tree
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
                if let obstacle, !deleted.contains(obstacle) { try adopt([obstacle], in: files) }
                let path = parent.appending(files.temporaryName())
                let stamp = try value.withUnsafeBytes {
                    try write($0, to: path, for: change, in: files)
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
        in files: FileDirectory
    ) throws -> FileStamp {
        do throws(FileFailure) {
            return try files.tree.write(value, to: path, like: change.old, mode: newFileMode)
        } catch {
            guard error.isOwnership else { throw error }
            // Its writer alone is refused when it is done again.
            files.refuse(change.path, StateError(.noPermission, error.sentence))
            throw EditedMeanwhile()
        }
    }

    func drop(_ commit: FileCommit, in tree: FileTree) {
        for step in commit.steps {
            if let staged = step.staged { try? tree.remove(staged.path) }
        }
    }
}
