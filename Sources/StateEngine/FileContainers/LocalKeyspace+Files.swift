import StateSystem

extension LocalKeyspace {
    /// Has the keys of some rules live in files, too: opens the directories, brings files and entries together, and begins to watch.
    ///
    /// What differs from the entries in a directory that was in use before is what others did meanwhile, and becomes one commit for each
    /// directory, which is durable when this returns. In one that was not, what is there is adopted, and the other keys get files.
    /// Called once, before anything is written, and after the rules are set.
    ///
    /// - Parameters:
    ///   - files: The directories; nil for none.
    ///   - notice: Called for each problem if there are none.
    /// - Throws: ``StateError``, naming the directory that cannot be used. Entries are as they were.
    /// - Complexity: O(*n*) in the bytes of the files.
    package func attach(
        _ files: FileContainers?,
        notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StateError) {
        // What the rules have moved may be on its way to storage, and compaction at work: the backing is not ours.
        try onCommitThread { [self] () throws(StateError) in try begin(files, notice) }
        try durably { _ in }
    }

    /// On the commit thread; what is found is on its way to storage when this returns.
    private func begin(
        _ files: FileContainers?,
        _ notice: (String) -> Void
    ) throws(StateError) {
        guard let marks = queue.capabilities.files else {
            guard files != nil else { return }
            throw StateError(.err, "values live in files only beside a store on disk")
        }
        guard let files else {
            do { return try leaveFiles(marks, notice) } catch {
                throw error as? StateError ?? StateError(.storage, "\(error)")
            }
        }
        files.keyspace.withLock { $0 = self }
        // Order matters: what is written from here on is committed to these files, and has to keep to them.
        withCore { $0.admission.files = files }
        do {
            try files.open(marks, self)
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
        _ marks: any PendingFileListBacking,
        _ notice: (String) -> Void
    ) throws {
        guard let record = try marks.fileContainers(), !record.isEmpty else { return }
        let former = FormerFiles(record)
        let text = marks.takePendingFileList()
        let left = LeftFiles(former, now: nil, in: self, text.flatMap { PendingFileList($0) })
        let now = FormerFiles([], epoch, at: former.places)
        try marks.setFileContainers(now.leaving(former).text)
        let kept = left.remove(now: nil, notice)
        try marks.setFileContainers(kept.isEmpty ? "" : now.keeping(kept).text)
        if text != nil { try marks.removePendingFileList() }
    }

    /// Waits until the commit thread has run `body`, between two commits.
    private func onCommitThread(
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

    /// After the last commit; if every file was written, the store needs no mark any more.
    func closeFiles() {
        guard let files = queue.files.withLock({ $0 }) else { return }
        withCore { $0.admission.files = nil }
        files.close()
        queue.files.withLock { $0 = nil }
        guard files.hasPendingFileList, files.containers.allSatisfy(\.unpublished.isEmpty),
            let marks = queue.capabilities.files
        else { return }
        // If it stays, the next start finds every file as its row says.
        do { try marks.removePendingFileList() } catch { return }
        files.hasPendingFileList = false
    }

    /// Whether a file is what its key holds: the newest version, or the one on stable storage, for what is newer is not in the file yet.
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

    /// Whether a key has a value, on stable storage or on its way there.
    func hasNewest(_ key: Key) -> Bool {
        withCore { core in key.bytes.withUnsafeBytes { core.peek($0) != nil } }
    }
}
