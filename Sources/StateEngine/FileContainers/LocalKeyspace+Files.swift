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
    ///   - notice: Told of what is wrong where there are none.
    /// - Throws: ``StateError``, naming the directory that cannot be used. Entries are as they were.
    /// - Complexity: O(*n*) in the bytes of the files.
    package func attach(
        _ files: FileContainers?,
        notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StateError) {
        // What the rules have moved may be on its way to storage, and compaction at work: the backing is not ours.
        try onCommitThread { [self] () throws(StateError) in try begin(files, nil, notice) }
        try durably { _ in }
    }

    /// On the commit thread; what is found is on its way to storage when this returns.
    ///
    /// Where it fails, keys still have to keep to the files that they had to keep to before.
    private func begin(
        _ files: FileContainers?,
        _ mark: String?,
        _ notice: (String) -> Void
    ) throws(StateError) {
        guard let marks = backing as? any FileMarkBacking else {
            guard files != nil else { return }
            throw StateError(.err, "values live in files only beside a store on disk")
        }
        guard let files else {
            do { try leaveFiles(marks, mark, notice) } catch {
                throw error as? StateError ?? StateError(.storage, "\(error)")
            }
            return withCore { $0.files = nil }
        }
        files.keyspace.withLock { $0 = self }
        // Order matters: what is written from here on is committed to these files, and has to keep to them.
        let former = withCore { core in
            defer { core.files = files }
            return core.files
        }
        do {
            try files.open(marks, self, mark)
        } catch {
            withCore { $0.files = former }
            files.close()
            throw error as? StateError ?? StateError(.storage, "\(error)")
        }
        look(after: files)
    }

    /// The same where directories cannot be used: their keys keep their values, and are written again once they can be.
    private func beginLater(_ files: FileContainers, _ mark: String?) {
        files.keyspace.withLock { $0 = self }
        files.openLater(self, mark)
        withCore { $0.files = files }
        look(after: files)
    }

    /// From here on the commit thread does.
    private func look(after files: FileContainers) {
        queue.files.withLock { $0 = files }
        files.start()
        queue.lookOutside()
    }

    /// No key lives in files any more.
    private func leaveFiles(
        _ marks: any FileMarkBacking,
        _ mark: String?,
        _ notice: (String) -> Void
    ) throws {
        guard let note = try marks.fileContainers(), !note.isEmpty else { return }
        let former = FormerFiles(note)
        let text = marks.takeFileMark() ?? mark
        let left = LeftFiles(former, now: nil, in: self, text.flatMap { FileMark($0) })
        let now = FormerFiles([], epoch, at: former.places)
        try marks.setFileContainers(now.leaving(former).text)
        let kept = left.remove(now: nil, notice)
        try marks.setFileContainers(kept.isEmpty ? "" : now.keeping(kept).text)
        if text != nil { try marks.removeFileMark() }
    }

    // MARK: Other rules

    /// Has keys live in other directories while the keyspace is in use; waits until they do.
    ///
    /// Keys that a directory begins to hold get files, those that it no longer holds lose theirs. Commits wait meanwhile, and are done to
    /// the files once they are open, as if they came after. Called on a thread of its own.
    ///
    /// - Parameters:
    ///   - files: The directories; nil for none.
    ///   - rules: What values in them have to keep to.
    ///   - notice: Told of what is wrong where there are none.
    /// - Throws: ``StateError``, naming the directory that cannot be used: the former ones are in use again, at once or once they can be.
    package func exchange(
        files: FileContainers?,
        rules: KeyRules,
        notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StateError) {
        try onCommitThread { [self] () throws(StateError) in
            try exchangeNow(files, rules, notice)
        }
    }

    /// Waits until the commit thread has run `body`, between two commits.
    private func onCommitThread(
        _ body: @escaping @Sendable () throws(StateError) -> Void
    ) throws(StateError) {
        let answer = Answer()
        let closed = StateError(.readOnly, "the keyspace is closed")
        let isTaken = queue.requestFiles { isOpen in
            let result = Result { () throws(StateError) in
                guard isOpen else { throw closed }
                try body()
            }
            answer.put(result.map { 0 })
        }
        guard isTaken else { throw closed }
        _ = try answer.wait().get()
    }

    /// On the commit thread.
    private func exchangeNow(
        _ new: FileContainers?,
        _ rules: KeyRules,
        _ notice: (String) -> Void
    ) throws(StateError) {
        let old = queue.files.withLock { $0 }
        old?.look()
        let mark = old?.unpublishedMark
        release(old)
        do throws(StateError) {
            if let old { new?.takeOver(old) }
            new?.openingRules = rules
            try begin(new, mark, notice)
            new?.openingRules = nil
        } catch {
            if let old { goBack(to: old, mark) }
            throw error
        }
        publish()
    }

    /// Has keys live again where they did: what was acknowledged meanwhile is committed there.
    private func goBack(to old: FileContainers, _ mark: String?) {
        let again = old.makeAnew()
        again.takeOver(old)
        again.keepDirectories(of: old)
        do throws(StateError) { try begin(again, mark, old.notice) } catch {
            old.notice("former directories are used again once they can be: \(error.message)")
            // What has failed to open is closed for good.
            let later = old.makeAnew()
            later.takeOver(old)
            later.keepDirectories(of: old)
            beginLater(later, mark)
        }
    }

    /// What the files are, where keys live in files.
    package var files: FileContainers? { queue.files.withLock { $0 } }

    /// After the last commit; where every file was written, the store needs no mark any more.
    func closeFiles() {
        release(queue.files.withLock { $0 })
        withCore { $0.files = nil }
    }

    /// What is written meanwhile still has to keep to them.
    private func release(_ files: FileContainers?) {
        guard let files else { return }
        files.close()
        queue.files.withLock { $0 = nil }
        guard files.hasMark, files.containers.allSatisfy(\.unpublished.isEmpty),
            let marks = backing as? any FileMarkBacking
        else { return }
        // Where it stays, the next start finds every file as its row says.
        do { try marks.removeFileMark() } catch { return }
        files.hasMark = false
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

    /// Whether storage keeps a key: one that is in memory still, by rules that are about to be others, gets its file as it moves.
    func isStored(_ key: Key) -> Bool {
        withCore { core in
            key.bytes.withUnsafeBytes { core.readDurable($0).map { !$0.isVolatile } ?? false }
        }
    }
}
