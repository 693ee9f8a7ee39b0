import CLinux
import StateSystem

/// Handles the edits by others, on the commit thread.
extension FileContainers {
    /// Adopts edits of files that are quiet, checks whether the directories are in their places,
    /// and tries again what has failed.
    func look() {
        guard let keyspace = keyspace.withLock({ $0 }) else { return }
        if let limits = takeReload() { reload(limits, keyspace) }
        for container in containers {
            container.checkPlace(wake)
            retry(container, keyspace)
            if container.comparison.isDue {
                rescan(container, keyspace)
            } else if !container.isAdopting(after: keyspace.revision) {
                let room = ReadingRoom(container.limits, memory())
                adopt(container.takeFound(room), of: container, into: keyspace)
            } else {
                // What was adopted is committed first, with what others have written meanwhile.
                wake(at: clinux_monotonic_nanoseconds() + 5_000_000)
            }
            keyspace.publish()
            container.files?.watcher.finishLook()
        }
        wakeForRetries()
    }

    /// A reload: the administrator accepts the directories that are at their paths now.
    private func reload(_ limits: Limits, _ keyspace: LocalKeyspace) {
        let former = places
        for container in containers {
            container.checkPlace(acceptsAnother: true, wake)
            container.take(limits)
        }
        guard places != former, let store = keyspace.queue.capabilities.files else { return }
        // If this record cannot be written, the next start accepts them if they are not empty.
        guard let record = try? store.fileContainers() else { return }
        try? store.setFileContainers(FormerFiles(record).standing(at: places).text)
    }

    private func retry(_ container: FileContainer, _ keyspace: LocalKeyspace) {
        guard container.retry.isDue else { return }
        container.problems.allowWrites()
        settleUnpublished(of: container, keyspace)
        if container.unpublished.isEmpty { container.retry.rest() } else { container.retry.next() }
    }

    private func settleUnpublished(of container: FileContainer, _ keyspace: LocalKeyspace) {
        for (path, left) in container.unpublished {
            guard let key = container.keys.key(of: path) else { continue }
            _ = container.settle(path, old: left.old, to: keyspace.entry(for: key)?.value)
        }
    }

    /// Compares all of a directory that is back, once its files do not change any more.
    private func rescan(_ container: FileContainer, _ keyspace: LocalKeyspace) {
        guard let files = container.files, let deadline = container.comparison.deadline else {
            return
        }
        let places = files.takeDue()
        let now = clinux_monotonic_nanoseconds()
        if files.watcher.isMoving, now < deadline {
            files.watcher.note(places.map { FileWatcher.Place($0) })
            return
        }
        container.comparison.end()
        container.problems.forgetFiles { container.unpublished[$0] != nil }
        settleUnpublished(of: container, keyspace)
        let found = compare(container, with: keyspace, nil) { _ in true }
        container.problems.recover()
        adopt(found, of: container, into: keyspace)
    }

    /// Reads every file of a container.
    ///
    /// Of the keys without a file, those that `hadFile` were removed. Files that a key has `left`
    /// do not count as edits. Transactions on their way to storage are not in the files yet, except
    /// for adopted edits. A file that could not be written is not an edit. What exceeds the
    /// ``ReadingRoom`` is found later, like an edit.
    ///
    /// - Returns: What differs from the entries.
    func compare(
        _ container: FileContainer,
        with keyspace: LocalKeyspace,
        _ left: LeftFiles?,
        _ hadFile: (Key) -> Bool
    ) -> [FoundFile] {
        guard let files = container.files else { return [] }
        let stored = keyspace.revision
        var found: [FoundFile] = []
        var room = ReadingRoom(container.limits, memory())
        for path in files.collectAll() {
            guard container.isNamed(path) else { continue }
            files.known[path] = nil
            guard !room.isFullAtStart else {
                files.lookAgain(at: [path], after: 0)
                continue
            }
            guard let file = files.look(at: path, isWritten: true, syncs: false) else { continue }
            room.noteRead(file.value)
            guard container.unpublished[path] == nil,
                !container.isAdopted(path, as: file.value, after: stored),
                !(left?.has(file.value, at: path, in: container.location) ?? false),
                !keyspace.holds(file)
            else { continue }
            room.noteFound(file.value)
            found.append(file)
        }
        found += removals(of: container, files, keyspace, stored).filter { hadFile($0.key) }
        if !found.isEmpty { files.tree.syncAll() }
        return found
    }

    private func removals(
        of container: FileContainer,
        _ files: FileDirectory,
        _ keyspace: LocalKeyspace,
        _ stored: Int64
    ) -> [FoundFile] {
        keys(of: container, in: keyspace).compactMap { key in
            guard let path = try? key.bytes.withBorrowed(container.keys.path),
                files.known[path] == nil, container.unpublished[path] == nil,
                !container.isAdopted(path, as: nil, after: stored),
                files.obstacles.onTheWay(to: path) == nil,
                // A file that is being written exists.
                files.isAbsent(path)
            else { return nil }
            let file = FoundFile(path: path, key: key, value: nil, status: nil, before: nil)
            return keyspace.holds(file) ? nil : file
        }
    }

    /// The keys that live in a container, as stable storage has them.
    ///
    /// A delete that is not committed yet does not count: if its transaction failed, the next start
    /// would find a key without a file and take it for removed.
    func keys(of container: FileContainer, in keyspace: LocalKeyspace) -> [Key] {
        keyspace.withCore { core in
            var keys: [Key] = []
            container.keys.commonPrefix.withUnsafeBytes { prefix in
                core.entries.live.forEach(prefix: prefix, after: nil) { head in
                    guard let version = head.version(at: core.revisions.durable),
                        !version.isDeleted, container.keys.holds(version.key)
                    else { return true }
                    keys.append(Key(verified: version.key))
                    return true
                }
            }
            return keys
        }
    }

    /// Makes edits ordinary transactions: one for all of them, unless they exceed one.
    ///
    /// If memory is short, values that take more than those before are refused, like any write.
    func adopt(_ found: [FoundFile], of container: FileContainer, into keyspace: LocalKeyspace) {
        var rest = found[...]
        while !rest.isEmpty {
            let chunk = keyspace.withCore { $0.prefix(of: rest) }
            rest = rest.dropFirst(chunk.count)
            let byteCount = chunk.reduce(0) { $0 + ($1.value?.count ?? 0) }
            let shortage = memory()?.shortage(adding: byteCount)
            let outcomes = keyspace.withCore { $0.adopt(chunk, shortage) }
            if case .refused(let error)? = outcomes.first, error.code == .readOnly {
                container.lookAgain(chunk, after: 100_000_000)
                continue
            }
            for (file, outcome) in zip(chunk, outcomes) { container.note(outcome, of: file) }
        }
    }
}

/// The result of adopting an edit.
enum FileAdoption {
    /// It is the transaction of this revision.
    case adopted(Int64)
    /// The entry has this value already.
    case same
    case refused(StateError)
}
