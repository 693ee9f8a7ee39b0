import StateSystem

extension LocalKeyspace {
    /// Makes the keys of some rules live in files, too: opens the directories, makes files and
    /// entries agree, and begins to watch.
    ///
    /// In a directory that was in use before, differences from the entries are edits by others;
    /// they become one commit for each directory, which is durable when this returns. In a new
    /// directory, the files are adopted, and the other keys get files. Called once, before anything
    /// is written, and after the rules are set.
    ///
    /// - Parameters:
    ///   - files: The directories; nil for none.
    ///   - notice: Called for each problem if `files` is nil.
    /// - Throws: ``StateError``, naming the directory that cannot be used. The entries are
    ///   unchanged.
    /// - Complexity: O(*n*) in the bytes of the files.
    package func attach(
        _ files: FileContainers?,
        notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StateError) {
        // Keys that the rules have moved may be on their way to storage, and compaction may be
        // running: only the commit thread may use the backing.
        try onCommitThread { [self] () throws(StateError) in try begin(files, notice) }
        try durably { _ in }
    }

    /// Runs on the commit thread; the edits are on their way to storage when this returns.
    private func begin(
        _ files: FileContainers?,
        _ notice: (String) -> Void
    ) throws(StateError) {
        guard let store = queue.capabilities.files else {
            guard files != nil else { return }
            throw StateError(
                .err,
                "a directory of files needs a store on disk: values in memory cannot live in files"
            )
        }
        guard let files else {
            do { return try leaveFiles(store, notice) } catch {
                throw error as? StateError ?? StateError(.storage, "\(error)")
            }
        }
        files.keyspace.withLock { $0 = self }
        // Order matters: what is written from here on is committed to these files, and must obey
        // them.
        withCore { $0.admission.files = files }
        do {
            try files.open(store, self)
        } catch {
            withCore { $0.admission.files = nil }
            files.close()
            throw error as? StateError ?? StateError(.storage, "\(error)")
        }
        queue.files.withLock { $0 = files }
        files.start()
        queue.submit(.look)
    }

    /// No key lives in files any more.
    private func leaveFiles(
        _ store: any PendingFileListBacking,
        _ notice: (String) -> Void
    ) throws {
        guard let record = try store.fileContainers(), !record.isEmpty else { return }
        let former = FormerFiles(record)
        let text = store.takePendingFileList()
        let left = LeftFiles(former, now: nil, in: self, text.flatMap { PendingFileList($0) })
        let now = FormerFiles([], epoch, at: former.places)
        try store.setFileContainers(now.leaving(former).text)
        let kept = left.remove(now: nil, notice)
        try store.setFileContainers(kept.isEmpty ? "" : now.keeping(kept).text)
        if text != nil { try store.setPendingFileList(nil) }
    }

    /// Waits until the commit thread has run `body`, between two commits.
    func onCommitThread(
        _ body: @escaping @Sendable () throws(StateError) -> Void
    ) throws(StateError) {
        let answer = Answer()
        let closed = StateError(.readOnly, "the keyspace is closed")
        let isTaken = queue.submit(
            .run { isOpen in
                let result = Result { () throws(StateError) in
                    guard isOpen else { throw closed }
                    try body()
                }
                answer.put(result.map { 0 })
            }
        )
        guard isTaken else { throw closed }
        _ = try answer.wait().get()
    }

    /// The files; nil if no key lives in files.
    package var files: FileContainers? { queue.files.withLock { $0 } }

    /// Called after the last commit; if every file was written, the store needs no list of pending
    /// files any more.
    func closeFiles() {
        guard let files = queue.files.withLock({ $0 }) else { return }
        withCore { $0.admission.files = nil }
        files.close()
        queue.files.withLock { $0 = nil }
        guard files.storedList != .none, files.containers.allSatisfy(\.unpublished.isEmpty),
            let store = queue.capabilities.files
        else { return }
        // If it stays, the next start finds that every file equals its value.
        do { try store.setPendingFileList(nil) } catch { return }
        files.storedList = .none
    }

    /// Whether a file holds the value of its key: the newest version, or the durable one, because
    /// newer versions are not in the file yet.
    func holds(_ file: FoundFile) -> Bool {
        withCore { core in
            file.key.bytes.withUnsafeBytes { key in
                isSame(file, core.peek(key)) || isSame(file, core.readDurable(key))
            }
        }
    }

    private func isSame(_ file: FoundFile, _ version: Record?) -> Bool {
        guard let value = version?.value else { return file.value == nil }
        return file.value?.withUnsafeBytes { $0.isEqual(to: value) } ?? false
    }

    /// Why a key can have no file, whatever is in its directory; nil if it can.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, once for each segment.
    func obstacle(to key: Key, in container: FileContainer) -> StateError? {
        do throws(StateError) {
            try key.bytes.withBorrowed { (bytes) throws(StateError) in
                let path = try container.keys.path(of: bytes)
                try FileContainer.checkDepth(of: bytes, at: path, container.limits)
                try withCore { (core) throws(StateError) in
                    try core.checkNesting(
                        of: bytes,
                        from: container.keys.prefix.count,
                        container.keys.holds
                    )
                }
            }
        } catch { return error }
        return nil
    }

    /// Whether a key has a value, on stable storage or on its way there.
    func hasNewest(_ key: Key) -> Bool {
        withCore { core in key.bytes.withUnsafeBytes { core.peek($0) != nil } }
    }
}
