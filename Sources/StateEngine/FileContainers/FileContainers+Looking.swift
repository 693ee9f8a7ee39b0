import CLinux
import StateSystem

/// What others do to the files, on the commit thread.
extension FileContainers {
    /// Adopts what others did to files that have come to rest, looks whether the directories are in their places, and tries again what
    /// has failed.
    func look() {
        guard let keyspace = keyspace.withLock({ $0 }) else { return }
        for container in containers {
            container.checkPlace(wake)
            retry(container, keyspace)
            if container.rescanDeadline != nil {
                rescan(container, keyspace)
            } else {
                adopt(container.takeFound(), of: container, into: keyspace)
            }
            keyspace.publish()
            container.files?.watcher.finishLook()
        }
        wakeForRetries()
    }

    private func retry(_ container: FileContainer, _ keyspace: LocalKeyspace) {
        guard container.retry.isDue else { return }
        container.allowFailing()
        settleUnpublished(of: container, keyspace)
        if container.unpublished.isEmpty { container.retry.rest() } else { container.retry.next() }
    }

    private func settleUnpublished(of container: FileContainer, _ keyspace: LocalKeyspace) {
        for (path, left) in container.unpublished {
            guard let key = container.key(of: path) else { continue }
            _ = container.settle(path, old: left.old, to: keyspace.entry(for: key)?.value)
        }
    }

    /// Compares all of a directory that has come back, once it has come to rest.
    private func rescan(_ container: FileContainer, _ keyspace: LocalKeyspace) {
        guard let files = container.files, let deadline = container.rescanDeadline else { return }
        let places = files.takeDue()
        let now = clinux_monotonic_nanoseconds()
        if files.watcher.isMoving, now < deadline {
            if !places.isEmpty { files.watcher.note(places.map { FileWatcher.Place($0) }) }
            return
        }
        container.rescanDeadline = nil
        container.lastKnown = [:]
        container.forgetFindings()
        settleUnpublished(of: container, keyspace)
        let found = compare(container, with: keyspace, nil) { _ in true }
        container.recover()
        adopt(found, of: container, into: keyspace)
    }

    /// Reads every file of a container.
    ///
    /// Of the keys without a file those that `hadFile` were removed. Files that a key has `left` are nobody's edits; what is on its way to
    /// storage has nothing to do with the files yet, but for edits that were adopted; what could not be written is no edit. What is more
    /// than a transaction may hold is found later, like an edit.
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
        var leftovers: [FilePath] = []
        let paths = files.collect(.root, &leftovers)
        for path in leftovers { try? files.tree.remove(path) }
        var found: [FoundFile] = []
        var byteCount = 0
        for path in paths {
            guard container.isNamed(path) else { continue }
            files.known[path] = nil
            guard let file = files.look(at: path, isWritten: true, syncs: false) else { continue }
            guard container.unpublished[path] == nil,
                !container.isAdopted(path, as: file.value, after: stored),
                !(left?.has(file.value, at: path, in: container.location) ?? false),
                !keyspace.holds(file)
            else { continue }
            // Whoever fills a directory does not fill the memory, where rules refuse what is in it.
            guard byteCount <= limits.transactionByteCount else {
                container.lookAgain([file], after: 0)
                continue
            }
            byteCount += file.value?.count ?? 0
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
            guard let path = try? key.bytes.withBorrowed(container.path),
                files.known[path] == nil, container.unpublished[path] == nil,
                !container.isAdopted(path, as: nil, after: stored),
                files.obstacles.onTheWay(to: path) == nil,
                // One that is being written is there.
                files.isAbsent(path)
            else { return nil }
            let file = FoundFile(path: path, key: key, value: nil, status: nil, before: nil)
            return keyspace.holds(file) ? nil : file
        }
    }

    /// The keys that live in a container, as stable storage has them.
    ///
    /// A delete that is not committed yet does not count: without a file the next start would take its key for removed, though its
    /// transaction never came to be.
    func keys(of container: FileContainer, in keyspace: LocalKeyspace) -> [Key] {
        keyspace.withCore { core in
            var keys: [Key] = []
            (container.only ?? container.prefix).withUnsafeBytes { prefix in
                core.entries.live.forEach(prefix: prefix, after: nil) { head in
                    guard let version = head.version(at: core.revisions.durable),
                        !version.isDeleted, container.holds(version.key)
                    else { return true }
                    keys.append(Key(verified: version.key))
                    return true
                }
            }
            return keys
        }
    }

    /// Makes edits transactions like any other: one for all of them, unless that is more than one may hold.
    func adopt(_ found: [FoundFile], of container: FileContainer, into keyspace: LocalKeyspace) {
        var rest = found[...]
        while !rest.isEmpty {
            let chunk = keyspace.withCore { $0.prefix(of: rest) }
            rest = rest.dropFirst(chunk.count)
            let outcomes = keyspace.withCore { $0.adopt(chunk, by: openingRules) }
            if case .refused(let error)? = outcomes.first, error.code == .readOnly {
                container.lookAgain(chunk, after: 100_000_000)
                continue
            }
            for (file, outcome) in zip(chunk, outcomes) { container.note(outcome, of: file) }
        }
    }
}

/// What became of an edit.
enum FileAdoption {
    /// It is the transaction of this revision.
    case adopted(Int64)
    /// The entry is so already.
    case same
    case refused(StateError)
}

extension FileContainer {
    /// Whether the directory is still the one at its place, and whether it has come back.
    func checkPlace(_ wake: @escaping @Sendable () -> Void) {
        if files != nil, isInPlace { return }
        release()
        do {
            // One that was never open counts as at a start: it may be empty because it is not mounted.
            try open(expectsFiles: true, wake)
            lose("the directory \(location) has come back, and is being read")
            // Whoever puts the directory there may be writing into it.
            rescanDeadline = clinux_monotonic_nanoseconds() + 2_000_000_000
            files?.watcher.note(FileWatcher.Place(path: .root, isTree: true, isWritten: true))
        } catch {
            lose((error as? StateError)?.message ?? "\(error)")
        }
    }

    /// What others have changed, as far as it has come to rest.
    func takeFound() -> [FoundFile] {
        guard let files else { return [] }
        let due = files.takeDue()
        if files.takeWholeAgain() {
            // What was removed while not all of it was looked at, is found by comparing all.
            rescanDeadline = clinux_monotonic_nanoseconds()
            files.watcher.note(due.map { FileWatcher.Place($0) })
            files.watcher.note(FileWatcher.Place(path: .root, isTree: true, isWritten: true))
            return []
        }
        let places = due.filter { isNamed($0.key) }
        guard !places.isEmpty else { return [] }
        let isMany = places.count > 8
        let removed = Set(places.keys.filter { files.known[$0] != nil && files.isAbsent($0) })
        let pause = pauseOfRemovals(removed.count, files)
        var found: [FoundFile] = []
        var byteCount = 0
        for (path, isWritten) in places {
            // As much as a transaction may hold, then what others commit, then the rest.
            guard byteCount <= limits.transactionByteCount else {
                let place = FileWatcher.Place(path: path, isTree: false, isWritten: isWritten)
                files.watcher.note([place], after: 0)
                continue
            }
            // What stands there is compared with the row when that is tried again.
            if unpublished[path] != nil {
                retry.hasten()
                continue
            }
            if pause > 0, removed.contains(path) {
                let place = FileWatcher.Place(path: path, isTree: false, isWritten: false)
                files.watcher.note([place], after: pause)
                continue
            }
            guard let file = files.look(at: path, isWritten: isWritten, syncs: !isMany) else {
                if files.known[path] == nil { accept(path) }
                continue
            }
            // Touched, or written as it was.
            if let value = file.value, let before = file.before, !before.isDoubtful,
                before.mark == ValueMark(value)
            {
                continue
            }
            byteCount += file.value?.count ?? 0
            found.append(file)
        }
        guard !found.isEmpty else { return [] }
        // Order matters: what was read is durable before it is told.
        if isMany { files.tree.syncAll() } else { files.syncParents(of: found.map(\.path)) }
        return found
    }

    /// How long removed files wait, in nanoseconds, because others are being removed: a directory that is removed as a whole, file by
    /// file, removes no key.
    private func pauseOfRemovals(_ count: Int, _ files: FileDirectory) -> Int64 {
        guard count > 0 else { return 0 }
        let now = clinux_monotonic_nanoseconds()
        let rest: Int64 = count > 16 ? 500_000_000 : 100_000_000
        let pause = max(files.watcher.removedAt, now - rest) + rest - now
        let since = removalsHeldSince ?? now
        removalsHeldSince = pause > 0 ? since : nil
        return now - since < 5_000_000_000 ? pause : 0
    }

    /// Whether a file has the name of a key that lives here; it is refused, once, where it has not.
    func isNamed(_ path: FilePath) -> Bool {
        guard only == nil else { return key(of: path) != nil }
        if path.isRoot || key(of: path) != nil { return !path.isRoot }
        guard let status = try? files?.tree.status(path), !status.isDirectory else {
            accept(path)
            return false
        }
        refuse(path, StateError(.rejected, "its name is not that of a key that lives here"))
        return false
    }

    func note(_ adoption: FileAdoption, of file: FoundFile) {
        switch adoption {
        case .adopted(let revision):
            adopting[file.path] = Adopted(revision: revision, value: file.value)
            accept(file.path)
        case .same: accept(file.path)
        case .refused(let error): refuse(file.path, error)
        }
    }

    /// Edits that could not be adopted now are looked at again.
    func lookAgain(_ found: some Sequence<FoundFile>, after nanoseconds: Int64) {
        var places: [FileWatcher.Place] = []
        for file in found {
            files?.known[file.path] = file.before ?? KnownFile(stamp: .none)
            files?.known[file.path]?.isDoubtful = true
            places.append(FileWatcher.Place(path: file.path, isTree: false, isWritten: true))
        }
        files?.watcher.note(places, after: nanoseconds)
    }
}

extension FileWatcher.Place {
    /// A place and whether bytes were written there.
    init(_ place: (key: FilePath, value: Bool)) {
        self.init(path: place.key, isTree: false, isWritten: place.value)
    }
}
