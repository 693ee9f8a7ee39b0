import StatePlatform
import StateSystem

/// The state of a file when it was last read or written.
struct KnownFile {
    var stamp: FileStamp
    /// What it held; nil if unknown.
    var digest: ValueDigest?
    /// Whether its entry may differ: the next look treats it as edited even if it has not changed.
    var isDoubtful = false
}

/// What is in the place of a key, if that may be new.
struct FoundFile {
    let path: FilePath
    let key: Key
    /// Nil if the file is gone.
    let value: [UInt8]?
    let status: FileStatus?
    /// Its known state before.
    let before: KnownFile?

    /// The cause of the commit.
    var writer: Cause { .file(uid: status?.uid ?? .max, gid: status?.gid ?? .max) }
}

/// The files of keys below one directory: their known states, and the edits by others.
///
/// ``FileBacking`` and ``FileContainer`` both use it. Only the thread that has the backing may use
/// it, but any thread may read watcher and obstacles.
final class FileDirectory {
    let tree: FileTree
    private let lock: DirectoryLock
    let watcher: FileWatcher
    let obstacles: FileObstacles
    var limits: Limits
    let edits: EditOrder
    /// The mode of a file that replaces none; nil if the mode of the directory decides.
    let newFileMode: mode_t?
    private let keyOf: (FilePath) -> Key?
    private let report: (FilePath, StateError) -> Void

    /// The file from which each entry was last read, or to which it was written.
    var known: [FilePath: KnownFile] = [:]
    /// Whether there were more names than the limit, so that some were not read.
    private var isPartial = false
    /// Whether the number of names fell below the limit again; what was removed meanwhile is
    /// unknown.
    private var isWholeAgain = false

    /// Begins to watch the directory; nothing is read yet.
    ///
    /// - Parameters:
    ///   - tree: The directory.
    ///   - lock: Makes this process the owner of the directory, as long as this object lives.
    ///   - obstacles: Records what obstructs keys.
    ///   - limits: The largest file that counts as a value, and the largest number of names.
    ///   - edits: What happens to an edit that a commit finds.
    ///   - newFileMode: The mode of a file that replaces none; nil if the mode of the directory
    ///     decides.
    ///   - keyOf: The key whose value a file is.
    ///   - report: Called for each file that turns out not to hold a value.
    /// - Throws: ``StateError/Code/storage``, if it cannot be watched.
    init(
        _ tree: FileTree,
        lock: DirectoryLock,
        obstacles: FileObstacles,
        limits: Limits,
        edits: EditOrder,
        newFileMode: mode_t? = nil,
        keyOf: @escaping (FilePath) -> Key?,
        report: @escaping (FilePath, StateError) -> Void
    ) throws(StateError) {
        self.tree = tree
        self.lock = lock
        self.obstacles = obstacles
        self.limits = limits
        self.edits = edits
        self.newFileMode = newFileMode
        self.keyOf = keyOf
        self.report = report
        watcher = try FileWatcher(tree)
    }

    deinit { watcher.stop() }

    // MARK: Which places there are

    /// The places of all keys; removes new files that an earlier process left behind.
    func collectAll() -> [FilePath] {
        let found = collect(.root)
        for path in found.leftovers { try? tree.remove(path) }
        return found.paths
    }

    /// The places of keys below `directory`.
    ///
    /// If there are more names than the limit, the rest is not read; the complete directory is
    /// refused and read again later.
    private func collect(_ directory: FilePath) -> Found {
        var found = Found()
        var rest = [directory]
        var listed: [FilePath] = []
        while let next = rest.popLast() {
            do throws(FileFailure) {
                try list(next, &found, &rest)
                listed.append(next)
            } catch  where error.code == E2BIG {
                refuse(.root, StateError(.storage, error.sentence))
                isPartial = true
                let place = FileWatcher.Place(path: .root, isTree: true, isWritten: false)
                watcher.note([place], after: 5_000_000_000)
                return found
            } catch  where error.code == ENOENT || error.code == ENOTDIR {
                // It has no keys; the files that it had are checked one by one.
            } catch {
                refuse(next, StateError(.storage, error.sentence))
            }
        }
        for path in listed { obstacles.remove(path) }
        if directory.isRoot, isPartial { (isPartial, isWholeAgain) = (false, true) }
        return found
    }

    /// Returns true once after the number of names fell below the limit again.
    func takeWholeAgain() -> Bool {
        defer { isWholeAgain = false }
        return isWholeAgain
    }

    /// What the names in directories are.
    private struct Found {
        var paths: [FilePath] = []
        /// New files that an earlier process left behind.
        var leftovers: [FilePath] = []
        var nameCount = 0
    }

    private func list(
        _ directory: FilePath,
        _ found: inout Found,
        _ subdirectories: inout [FilePath]
    ) throws(FileFailure) {
        let limit = limits.fileCount
        try tree.forEachName(in: directory) { (name, isDirectory) throws(FileFailure) in
            found.nameCount += 1
            guard found.nameCount <= limit else {
                throw FileFailure(tooManyNames: limit)
            }
            let path = directory.appending(name)
            if isDirectory, FileName.isOfKey(name) {
                if path.mayHoldKeys { subdirectories.append(path) }
            } else if FileName.isOfKey(name) {
                found.paths.append(path)
            } else if !isDirectory, tree.isTemporary(name) {
                found.leftovers.append(path)
            }
        }
    }

    /// The places that may have changed and are quiet now, and whether bytes were written there.
    func takeDue() -> [FilePath: Bool] {
        let (due, failures) = watcher.takeDue()
        for (path, error) in failures { report(path, error) }
        var places: [FilePath: Bool] = [:]
        for place in due { places[place.path] = place.isWritten }
        addTrees(due, to: &places)
        if FileWatcher.lookNanoseconds != nil { postpone(&places) }
        // A file that became a directory is found by what appeared in it.
        for path in places.keys {
            for above in path.ancestors where known[above] != nil && places[above] == nil {
                places[above] = false
            }
        }
        return places
    }

    private func addTrees(_ due: [FileWatcher.Place], to places: inout [FilePath: Bool]) {
        let trees = Set(due.lazy.filter(\.isTree).map(\.path))
        guard !trees.isEmpty else { return }
        // Somebody who makes directories one by one causes a check of all known files each time:
        // that must not allocate.
        let isIn: (FilePath) -> Bool = { path in
            trees.count <= 16
                ? trees.contains(where: path.isBelow)
                : path.ancestors.contains { trees.contains($0) }
        }
        for path in Array(known.keys) + Array(obstacles.all.keys) where isIn(path) {
            places[path] = places[path] ?? false
        }
        for path in trees where !path.ancestors.contains(where: { trees.contains($0) }) {
            for path in collect(path).paths { places[path] = places[path] ?? false }
        }
    }

    // MARK: What is there

    /// Reads one place, and records what is there.
    ///
    /// - Parameters:
    ///   - path: The place.
    ///   - isWritten: Whether it is read even if its stamp is unchanged.
    ///   - syncs: Whether its contents are made durable.
    /// - Returns: Its contents, if they may be new; nil if nothing changed, it holds no value, or
    ///   it is still being written.
    func look(at path: FilePath, isWritten: Bool, syncs: Bool = true) -> FoundFile? {
        guard let key = keyOf(path) else { return nil }
        do throws(StateError) {
            guard let status = try status(of: path) else {
                obstacles.remove(path)
                return forget(path, key)
            }
            if status.isDirectory {
                if known[path] == nil { return nil }
                if holdsKeys(path) { return forget(path, key) }
            }
            if status.stamp == known[path]?.stamp, !isWritten, obstacles[path] == nil { return nil }
            let contents = try tree.contents(of: path, limit: limits.valueByteCount, syncs: syncs)
            guard let contents else { return forget(path, key) }
            guard case .value(let value, let read) = contents else {
                watcher.note([FileWatcher.Place(path: path)])
                return nil
            }
            if let refusal = refusalToReplace(path, read) {
                refuse(path, refusal)
            } else {
                obstacles.remove(path)
            }
            let file = KnownFile(stamp: read.stamp, digest: ValueDigest(value))
            let before = known.updateValue(file, forKey: path)
            return FoundFile(path: path, key: key, value: value, status: read, before: before)
        } catch {
            refuse(path, error)
            return nil
        }
    }

    func status(of path: FilePath) throws(StateError) -> FileStatus? {
        do throws(FileFailure) { return try tree.status(path) } catch {
            throw StateError(.storage, error.sentence)
        }
    }

    /// Whether there is certainly no file.
    func isAbsent(_ path: FilePath) -> Bool {
        do throws(FileFailure) { return try tree.status(path) == nil } catch { return false }
    }

    private func forget(_ path: FilePath, _ key: Key) -> FoundFile? {
        guard let before = known.removeValue(forKey: path) else { return nil }
        return FoundFile(path: path, key: key, value: nil, status: nil, before: before)
    }

    private func holdsKeys(_ path: FilePath) -> Bool { !collect(path).paths.isEmpty }

    /// A file of another owner can be read, but must not be replaced by one of this process's user.
    private func refusalToReplace(_ path: FilePath, _ status: FileStatus) -> StateError? {
        let user = geteuid()
        guard user != 0, status.uid != user else { return nil }
        return StateError(.noPermission, "\(path) belongs to uid \(status.uid)")
    }

    /// Refuses writes to the place from now on.
    func refuse(_ path: FilePath, _ error: StateError) {
        if obstacles.put(error, at: path) { report(path, error) }
    }

    /// Makes the names in the directories of `paths` durable.
    func syncParents(of paths: some Sequence<FilePath>) {
        let walk = tree.walk()
        for parent in Set(paths.map(\.parent)).sorted() { try? walk.directory(parent).sync() }
    }

    /// Waits until nobody has changed a file for the quiet time, for at most a second.
    func awaitRest(_ path: FilePath) {
        for _ in 0..<10 {
            guard let status = try? tree.status(path), status.isRegular else { return }
            let age = SystemClock.wallMilliseconds() * 1_000_000 - status.changed
            let rest = FileWatcher.quietNanoseconds - age
            guard rest > 0 else { return }
            var pause = timespec(tv_sec: 0, tv_nsec: Int(min(rest, FileWatcher.quietNanoseconds)))
            nanosleep(&pause, nil)
        }
    }
}
