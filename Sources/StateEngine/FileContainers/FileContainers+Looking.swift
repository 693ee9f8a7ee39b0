import CLinux
import StateSystem

/// Handles the edits by others, on the commit thread.
extension FileContainers {
    /// Adopts edits of files that are quiet, checks whether the directories are in their places,
    /// and tries again what has failed.
    ///
    /// All of that is done in pieces of a few milliseconds. Others have twice as long between them:
    /// whoever may write to a directory can make work without end.
    func look() {
        guard let keyspace = keyspace.withLock({ $0 }) else { return }
        if let limits = takeReload() { reload(limits, keyspace) }
        guard clinux_monotonic_nanoseconds() >= looks.next else { return wake(at: looks.next) }
        var room = ReadingRoom(containers[0].limits, memory())
        let first = looks.firstContainer
        for container in containers[first...] + containers[..<first] {
            look(at: container, keyspace, &room)
        }
        looks.firstContainer = (first + 1) % containers.count
        looks.next = clinux_monotonic_nanoseconds() + max(2 * room.elapsed, 5_000_000)
        if room.isFull || containers.contains(where: \.hasMore) { wake(at: looks.next) }
        wakeForRetries()
    }

    private func look(
        at container: FileContainer,
        _ keyspace: LocalKeyspace,
        _ room: inout ReadingRoom
    ) {
        container.checkPlace(wake)
        guard !room.isFull else { return }
        retry(container, keyspace, &room)
        if container.comparison.isDue {
            rescan(container, keyspace, &room)
        } else if !container.isAdopting(after: keyspace.revision) {
            adopt(container.takeFound(&room), of: container, into: keyspace)
        } else {
            // What was adopted is committed first, with what others have written meanwhile.
            wake(at: clinux_monotonic_nanoseconds() + 5_000_000)
        }
        keyspace.publish()
        container.files?.finishLook()
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

    private func retry(
        _ container: FileContainer,
        _ keyspace: LocalKeyspace,
        _ room: inout ReadingRoom
    ) {
        if container.retried.isEmpty {
            guard container.retry.isDue else { return }
            container.problems.allowWrites()
            container.retried = Array(container.unpublished.keys)
        }
        while !room.isOver, let path = container.retried.popLast() {
            guard let left = container.unpublished[path], let key = container.keys.key(of: path)
            else { continue }
            room.notePlace()
            _ = container.settle(path, old: left.old, to: keyspace.entry(for: key)?.value)
        }
        guard container.retried.isEmpty else { return }
        if container.unpublished.isEmpty { container.retry.rest() } else { container.retry.next() }
    }

    /// Compares all of a directory that is back, once its files do not change any more.
    private func rescan(
        _ container: FileContainer,
        _ keyspace: LocalKeyspace,
        _ room: inout ReadingRoom
    ) {
        guard let files = container.files, let deadline = container.comparison.deadline else {
            return
        }
        if !container.comparison.isBegun {
            let places = files.takePlaces()
            if files.watcher.isMoving, clinux_monotonic_nanoseconds() < deadline {
                return files.watcher.note(places)
            }
            container.comparison.begin()
            container.problems.forgetFiles { container.unpublished[$0] != nil }
            files.takeAll()
        }
        // What was adopted is committed first, with what others have written meanwhile.
        guard !container.isAdopting(after: keyspace.revision) else { return }
        adopt(comparePiece(of: container, files, keyspace, &room), of: container, into: keyspace)
        guard files.isSettled, container.comparison.missing?.isEmpty ?? false else { return }
        container.comparison.end()
        container.problems.recover()
        // What was written meanwhile is in no file yet.
        if !container.unpublished.isEmpty { container.retry.hasten() }
    }

    /// Compares some files with their entries, and looks for the files of some keys once all files
    /// were compared.
    private func comparePiece(
        of container: FileContainer,
        _ files: FileDirectory,
        _ keyspace: LocalKeyspace,
        _ room: inout ReadingRoom
    ) -> [FoundFile] {
        let stored = keyspace.revision
        var found: [FoundFile] = []
        repeat {
            let due = files.takeDue(upTo: ReadingRoom.placeCount)
            if due.isEmpty { room.notePlace() }
            for (path, isWritten) in due {
                guard !room.isFull else {
                    files.putBack(path, isWritten: isWritten)
                    continue
                }
                room.notePlace()
                guard let file = difference(at: path, container, files, keyspace, stored, &room)
                else { continue }
                found.append(file)
            }
        } while files.hasMore && !room.isFull
        found = files.synced(found) { room.isLate }
        if files.isSettled {
            var missing = container.comparison.missing ?? keys(of: container, in: keyspace)
            var (removed, directories): ([FoundFile], Set<FilePath>) = ([], [])
            while !room.isFull, directories.count < 8, let key = missing.popLast() {
                room.notePlace()
                // It may be known from before, and be gone.
                let path = try? key.bytes.withBorrowed(container.keys.path)
                if let path, files.isAbsent(path) { files.known[path] = nil }
                guard let file = removal(of: key, container, files, keyspace, stored) else {
                    continue
                }
                room.noteFound(nil)
                removed.append(file)
                directories.insert(file.path.parent)
            }
            container.comparison.missing = missing
            found += files.syncedRemovals(removed)
        }
        return found
    }

    /// Reads every file of a container.
    ///
    /// Of the keys without a file, those that `hadFile` were removed. Files that a key has `left`
    /// do not count as edits. Transactions on their way to storage are not in the files yet, except
    /// for adopted edits. A file that could not be written is not an edit. What exceeds the
    /// ``ReadingRoom`` of a start is found later, like an edit.
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
            guard !room.isFullAtStart else {
                if container.isNamed(path) { files.lookAgain(at: [path], after: 0) }
                continue
            }
            let file = difference(at: path, container, files, keyspace, stored, &room) {
                left?.has($0, at: path, in: container.location) ?? false
            }
            if let file { found.append(file) }
            // The rule may have let everybody read the key when its file was written.
            do throws(FileFailure) { try files.restrict(path) } catch {
                let reason = "others may read it, whom its rule forbids to: \(error.sentence)"
                container.problems.refuse(path, StateError(.storage, reason))
            }
        }
        for key in keys(of: container, in: keyspace) {
            guard let file = removal(of: key, container, files, keyspace, stored), hadFile(key)
            else { continue }
            found.append(file)
        }
        return files.syncedAtStart(found)
    }

    /// Reads a file; nil if it agrees with its entry, or is none of a key.
    private func difference(
        at path: FilePath,
        _ container: FileContainer,
        _ files: FileDirectory,
        _ keyspace: LocalKeyspace,
        _ stored: Int64,
        _ room: inout ReadingRoom,
        isLeft: ([UInt8]?) -> Bool = { _ in false }
    ) -> FoundFile? {
        guard container.isNamed(path) else { return nil }
        files.known[path] = nil
        guard let file = files.look(at: path, isWritten: true, syncs: false) else { return nil }
        room.noteRead(file.value)
        guard container.unpublished[path] == nil,
            !container.isAdopted(path, as: file.value, after: stored), !isLeft(file.value),
            !keyspace.holds(file)
        else { return nil }
        room.noteFound(file.value)
        return file
    }

    /// The removal of the file of a key; nil if it is there, or is not known to be gone.
    ///
    /// A key that can have no file is named: nobody has removed one.
    private func removal(
        of key: Key,
        _ container: FileContainer,
        _ files: FileDirectory,
        _ keyspace: LocalKeyspace,
        _ stored: Int64
    ) -> FoundFile? {
        // A key without a path is named by its own bytes.
        let path =
            (try? key.bytes.withBorrowed(container.keys.path))
            ?? FilePath(Array(key.bytes.dropFirst(container.keys.prefix.count)))
        guard files.known[path] == nil else { return nil }
        if let obstacle = keyspace.obstacle(to: key, in: container) {
            container.problems.refuse(path, obstacle)
            return nil
        }
        guard container.unpublished[path] == nil,
            !container.isAdopted(path, as: nil, after: stored),
            files.obstacles.onTheWay(to: path) == nil,
            // A file that is being written exists.
            files.isAbsent(path)
        else { return nil }
        let file = FoundFile(path: path, key: key, value: nil, status: nil, before: nil)
        return keyspace.holds(file) ? nil : file
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
