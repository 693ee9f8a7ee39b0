/// Puts the new files into place, and handles a commit that fails there.
extension FileBacking {
    /// Carries out the steps of a commit whose new files are written.
    func publish(_ staged: StagedFiles, in files: FileDirectory) throws {
        guard !staged.steps.isEmpty else { return }
        let tree = files.tree
        let isJournaled = staged.steps.count > 1
        if isJournaled { try writeJournal(of: staged, in: files) }
        var publisher = FilePublisher(tree)
        do throws(FileFailure) {
            try publisher.take(staged.steps)
        } catch {
            if !isJournaled, !publisher.hasBegun {
                files.drop(staged)
                throw error
            }
            throw StateError(.readOnly, "\(StateError.unknownOutcome): \(error.sentence)")
        }
        if !isJournaled, let obstructed = publisher.obstructed.first {
            try adopt([obstructed.path], in: files)
        }
        note(publisher.edited, publisher.obstructed, in: files)
        if isJournaled { try? tree.remove(FileJournal.path) }
    }

    /// Edits at the moment of a commit come after it.
    private func note(
        _ edited: [FilePath],
        _ obstructed: [(path: FilePath, failure: FileFailure)],
        in files: FileDirectory
    ) {
        for (path, failure) in obstructed {
            files.refuse(path, StateError(.storage, failure.sentence))
        }
        let paths = edited + obstructed.map(\.path)
        files.watcher.note(paths.map { FileWatcher.Place(path: $0, isTree: true) })
    }

    private func writeJournal(of staged: StagedFiles, in files: FileDirectory) throws {
        let tree = files.tree
        do throws(FileFailure) {
            try tree.remove(FileJournal.path)
            let bytes = FileJournal.encoded(staged.steps)
            let written = bytes.withUnsafeBytes { bytes in
                Result { () throws(FileFailure) in
                    try tree.write(bytes, to: FileJournal.path, like: nil, mode: 0o600)
                }
            }
            _ = try written.get()
            try tree.directory(FileJournal.directory).sync()
        } catch {
            // Nothing was committed only if the journal is certainly gone: else a start may replay
            // it.
            do throws(FileFailure) { try tree.removeJournal() } catch let second {
                throw StateError(.readOnly, "\(StateError.unknownOutcome): \(second.sentence)")
            }
            files.drop(staged)
            throw error
        }
    }

    // MARK: After a commit whose outcome is unknown

    /// Carries out the steps of the commit whose outcome is unknown again, to the end.
    ///
    /// Only a rename or the sync of a directory can have failed; the files were synced before. A
    /// file system that has lost a change of a directory refuses every later sync (it aborts its
    /// journal), so a sync that succeeds can be trusted.
    ///
    /// - Throws: ``StateError/Code/storage`` if that is not possible yet.
    public func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        guard let files, let commit = unfinished else {
            throw StateError(.storage, "\(directory) is not open")
        }
        if let finding = place?.finding { throw StateError(.storage, finding) }
        let tree = files.tree
        var publisher = FilePublisher(tree)
        do throws(FileFailure) {
            try publisher.take(commit.staged.steps)
            try tree.removeJournal()
        } catch {
            throw StateError(.storage, error.sentence)
        }
        unfinished = nil
        files.finish(commit.staged)
        note(publisher.edited, publisher.obstructed, in: files)
        for change in commit.changes { change.withStored(receive) }
        return [:]
    }
}
