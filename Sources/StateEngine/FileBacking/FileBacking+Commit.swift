extension FileBacking {
    /// Writes the files of all changes beside their targets, syncs them, renames them and syncs the
    /// directories.
    ///
    /// - Throws: ``EditedMeanwhile``, if others changed one of the files or something else is in
    ///   its place. ``StateError`` with ``StateError/Code/noSpace`` or
    ///   ``StateError/Code/readOnly``: every file is as it was, unless the message begins with
    ///   `outcome unknown`. If the directory is no longer at its path, it names the path.
    /// - Complexity: O(*n*) in the bytes of the values, with one sync for each file and each
    ///   directory, and two for a journal if there are several files.
    public func commit(_ batch: borrowing CommitBatch) throws {
        guard let files, unfinished == nil else {
            throw StateError(.readOnly, "\(directory) is not open: nothing was committed")
        }
        if let finding = place?.finding { throw StateError(.readOnly, finding) }
        var changes: [FileChange] = []
        try batch.forEachChange {
            let path = try FileName.path(of: $0.key)
            changes.append(FileChange(path: path, value: $0.value, revision: $0.revision))
        }
        var staged = StagedFiles()
        do {
            staged = try files.stage(changes.lastOfEach(\.path))
            try meet(staged, in: files)
            try publish(staged, in: files)
            try requirePlace()
        } catch let failure as FileFailure {
            throw failure.refusal
        } catch let error as StateError where error.isOutcomeUnknown {
            unfinished = UnfinishedCommit(batch, staged)
            throw error
        }
        files.finish(staged)
    }

    /// A commit to a directory that was moved meanwhile is not acknowledged.
    private func requirePlace() throws(StateError) {
        guard let finding = place?.finding else { return }
        throw StateError(.readOnly, "\(StateError.unknownOutcome): \(finding)")
    }

    /// Adopts the edits that the commit has found; nothing of it is staged then.
    private func meet(_ staged: StagedFiles, in files: FileDirectory) throws {
        guard staged.edited.isEmpty else { try adopt(staged.edited, in: files) }
        meetingCount = 0
        guard let (path, obstacle) = staged.obstructed.first else { return }
        switch obstacle {
        case .blocked(let place): try adopt([place], in: files)
        case .failure(let failure):
            // Its writer alone is refused when the commit is repeated.
            files.refuse(path, StateError(.noPermission, failure.sentence))
            throw EditedMeanwhile()
        }
    }

    /// Adopts what others did before the commit, which is then repeated on top of it.
    func adopt(_ paths: [FilePath], in files: FileDirectory) throws -> Never {
        meetingCount += 1
        guard meetingCount <= 16 else {
            meetingCount = 0
            throw StateError(
                .conflict,
                "\(paths[0]) keeps being changed by others: nothing was committed; try again"
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
}

/// A commit whose outcome is unknown.
struct UnfinishedCommit {
    /// The last change of each key, with bytes of its own: the batch does not live that long.
    let changes: [AdoptedChange]
    let staged: StagedFiles

    fileprivate init(_ batch: borrowing CommitBatch, _ staged: StagedFiles) {
        var changes: [AdoptedChange] = []
        batch.forEachChange { changes.append(AdoptedChange($0)) }
        self.changes = changes.lastOfEach(\.key)
        self.staged = staged
    }
}
