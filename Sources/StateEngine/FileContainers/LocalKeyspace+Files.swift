extension LocalKeyspace {
    /// Has the keys of some rules live in files, too: opens the directories, brings files and entries together, and begins to watch.
    ///
    /// What differs from the entries in a directory that was in use before is what others did meanwhile, and becomes one commit for each
    /// directory, which is durable when this returns. In one that was not, what is there is adopted, and the other keys get files.
    /// Called once, before anything is written, and after the rules are set.
    ///
    /// - Throws: ``StateError``, naming the directory that cannot be used. Entries are as they were.
    /// - Complexity: O(*n*) in the bytes of the files.
    package func attach(_ files: FileContainers) throws(StateError) {
        guard let marks = backing as? any FileMarkBacking else {
            throw StateError(.err, "values live in files only beside a store on disk")
        }
        files.keyspace.withLock { $0 = self }
        do {
            try files.open(marks, self)
        } catch {
            files.close()
            throw error as? StateError ?? StateError(.storage, "\(error)")
        }
        // Order matters: from here on the commit thread looks after the files.
        withCore { $0.files = files }
        queue.files.withLock { $0 = files }
        files.start()
        queue.lookOutside()
        let revision = withCore { $0.provisionalRevision }
        if revision > self.revision { try awaitDurable(revision) }
    }

    /// What the files are, where keys live in files.
    package var files: FileContainers? { queue.files.withLock { $0 } }

    /// After the last commit; where every file was written, the store needs no mark any more.
    func closeFiles() {
        guard let files = queue.files.withLock({ $0 }) else { return }
        files.close()
        queue.files.withLock { $0 = nil }
        withCore { $0.files = nil }
        guard files.hasMark, files.containers.allSatisfy(\.unpublished.isEmpty) else { return }
        // Where it stays, the next start finds every file as its row says.
        try? (backing as? any FileMarkBacking)?.removeFileMark()
    }

    private func awaitDurable(_ revision: Int64) throws(StateError) {
        let answer = StateEngine.Answer()
        withCore { core in
            core.hold(
                KeyspaceCore.Answer(
                    revision: revision,
                    result: .success(revision),
                    completion: { answer.put($0) }
                )
            )
        }
        publish()
        _ = try answer.wait().get()
    }

    /// Whether the newest version of a key is what its file holds.
    func holds(_ file: FoundFile) -> Bool {
        withCore { core in
            file.key.bytes.withUnsafeBytes { key in
                guard let newest = core.read(key)?.value else { return file.value == nil }
                return file.value?.withUnsafeBytes { $0.isEqual(to: newest) } ?? false
            }
        }
    }
}
