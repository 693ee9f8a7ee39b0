import CLinux
import StateSystem

extension FileContainer {
    /// Opens the directory again if the one in use is no longer at its path.
    func checkPlace(acceptsAnother: Bool = false, _ wake: @escaping @Sendable () -> Void) {
        if files != nil, isInPlace { return }
        release()
        do {
            // A different directory is treated as at a start: it may be empty because nothing is
            // mounted there.
            try open(expectsFiles: true, acceptsAnother: acceptsAnother, wake)
            problems.lose("the directory \(location) is back and is being read")
            // Whoever puts the directory there may still be writing into it.
            comparison.schedule(within: 2_000_000_000, isLost: true)
            files?.watcher.note([FileWatcher.Place(path: .root, isTree: true)])
        } catch {
            problems.lose((error as? StateError)?.message ?? "\(error)")
        }
    }

    /// Sets other limits: what was too large or too much is read again.
    func take(_ limits: Limits) {
        let isSame =
            limits.fileCount == self.limits.fileCount
            && limits.valueByteCount == self.limits.valueByteCount
        self.limits = limits
        guard !isSame, let files else { return }
        files.limits = limits
        compareAll()
    }

    /// Makes the next look compare all of the directory.
    private func compareAll() {
        guard !comparison.isDue || comparison.isBegun else { return }
        comparison.schedule(within: 0, isLost: comparison.isLost)
    }

    /// What others have changed and are no longer writing.
    ///
    /// - Parameter room: How much is read.
    /// - Returns: What differs; the rest is found later.
    func takeFound(_ room: inout ReadingRoom) -> [FoundFile] {
        guard let files else { return [] }
        var found: [FoundFile] = []
        repeat {
            let due = files.takeDue(upTo: ReadingRoom.placeCount)
            if files.takeWholeAgain() {
                // Removals while not all of it was read are found by comparing all.
                compareAll()
                files.watcher.note([FileWatcher.Place(path: .root, isTree: true)], after: 0)
                break
            }
            // What is only listed takes time, too.
            if due.isEmpty { room.notePlace() }
            find(due.filter { isNamed($0.path) }, files, &room, &found)
        } while files.hasMore && !room.isFull
        // Order matters: what was read is durable before it is adopted.
        return files.synced(found) { room.isLate }
    }

    private func find(
        _ places: [(path: FilePath, isWritten: Bool)],
        _ files: FileDirectory,
        _ room: inout ReadingRoom,
        _ found: inout [FoundFile]
    ) {
        let known = places.lazy.map(\.path).filter { files.known[$0] != nil }
        let removed = Set(known.filter(files.isAbsent))
        let pause = pauseOfRemovals(removed.count, files)
        for (path, isWritten) in places {
            guard !room.isFull else {
                files.putBack(path, isWritten: isWritten)
                continue
            }
            room.notePlace()
            // It is compared with the value when writing it is tried again.
            if unpublished[path] != nil {
                retry.hasten()
                continue
            }
            if pause > 0, removed.contains(path) {
                let place = FileWatcher.Place(path: path, isWritten: false)
                files.watcher.note([place], after: pause)
                continue
            }
            guard let file = files.look(at: path, isWritten: isWritten, syncs: false) else {
                if files.known[path] == nil { problems.accept(path) }
                continue
            }
            // It was only touched, or written with the same contents.
            if let value = file.value, let before = file.before, !before.isDoubtful,
                before.digest == ValueDigest(value)
            {
                continue
            }
            room.noteFound(file.value)
            found.append(file)
        }
    }

    /// How long removed files wait, in nanoseconds: removing a directory with all its files removes
    /// no key.
    private func pauseOfRemovals(_ count: Int, _ files: FileDirectory) -> Int64 {
        guard count > 0 else { return 0 }
        let now = clinux_monotonic_nanoseconds()
        var held = heldRemovals ?? (since: now, count: 0)
        held.count += count
        let rest: Int64 = held.count > 16 ? 500_000_000 : 100_000_000
        // Without events, they count as removed when the first look finds it.
        let removedAt = FileWatcher.lookNanoseconds == nil ? files.watcher.removedAt : held.since
        let pause = max(removedAt, now - rest) + rest - now
        heldRemovals = pause > 0 ? held : nil
        return now - held.since < 5_000_000_000 ? pause : 0
    }

    /// Returns true if the name of a file is that of a key that lives here; otherwise refuses it,
    /// once.
    func isNamed(_ path: FilePath) -> Bool {
        guard keys.only == nil else { return keys.key(of: path) != nil }
        if path.isRoot || keys.key(of: path) != nil { return !path.isRoot }
        guard let status = try? files?.tree.status(path), !status.isDirectory else {
            problems.accept(path)
            return false
        }
        let error = StateError(.rejected, "its name is not that of a key in this directory")
        problems.refuse(path, error)
        return false
    }

    func note(_ adoption: FileAdoption, of file: FoundFile) {
        switch adoption {
        case .adopted(let revision):
            adopting[file.path] = Adopted(revision: revision, value: file.value)
            problems.accept(file.path)
        case .same: problems.accept(file.path)
        case .refused(let error): problems.refuse(file.path, error)
        }
    }

    /// Edits that cannot be adopted now are read again.
    func lookAgain(_ found: some Sequence<FoundFile>, after nanoseconds: Int64) {
        guard let files else { return }
        for file in found { files.known[file.path] = file.before }
        files.lookAgain(at: found.map(\.path), after: nanoseconds)
    }
}
