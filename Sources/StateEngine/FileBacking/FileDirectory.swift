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
    private let locks: [DirectoryLock]
    let watcher: FileWatcher
    let obstacles: FileObstacles
    var limits: Limits {
        didSet { watcher.limitNames(to: limits.fileCount) }
    }
    let edits: EditOrder
    /// The mode of a file that replaces none; nil if the mode of the directory decides.
    let newFileMode: mode_t?
    private let keyOf: (FilePath) -> Key?
    private let report: (FilePath, StateError) -> Void

    /// What was taken from the watcher and not returned yet.
    private struct Taken {
        /// Places that may have changed, or were found in directories.
        var places: [(path: FilePath, isWritten: Bool)] = []
        /// Places in directories that may have changed: what is known there, and below, comes next.
        var unvisited: [FilePath] = []
        /// The directories in which new files are looked for then.
        var listing: Listing?
        /// Whether the watcher has more, or may have.
        var isCut = false

        var isEmpty: Bool { places.isEmpty && unvisited.isEmpty && listing == nil }
    }

    /// The file from which each entry was last read, or to which it was written.
    var known = PathTable<KnownFile>()
    /// Whether there were more names than the limit, so that some were not read.
    private var isPartial = false
    /// Whether the number of names fell below the limit again; what was removed meanwhile is
    /// unknown.
    private var isWholeAgain = false
    private var taken = Taken()
    /// What is not durable yet.
    var syncs = FileSyncs()
    /// Files that commands wait for, which are being looked at, and since when.
    var wanted: (paths: Set<FilePath>, since: Int64) = ([], 0)

    /// Begins to watch the directory; nothing is read yet.
    ///
    /// - Parameters:
    ///   - tree: The directory.
    ///   - locks: Make this process the owner of the directory, as long as this object lives.
    ///   - obstacles: Records what obstructs keys.
    ///   - limits: The largest file that counts as a value, and the largest number of names.
    ///   - edits: What happens to an edit that a commit finds.
    ///   - newFileMode: The mode of a file that replaces none; nil if the mode of the directory
    ///     decides.
    ///   - directoryLimit: The largest number of directories that are watched.
    ///   - keyOf: The key whose value a file is.
    ///   - report: Called for each file that turns out not to hold a value.
    /// - Throws: ``StateError/Code/storage``, if it cannot be watched.
    init(
        _ tree: FileTree,
        locks: [DirectoryLock],
        obstacles: FileObstacles,
        limits: Limits,
        edits: EditOrder,
        newFileMode: mode_t? = nil,
        directoryLimit: Int = FileWatcher.directoryLimit,
        keyOf: @escaping (FilePath) -> Key?,
        report: @escaping (FilePath, StateError) -> Void
    ) throws(StateError) {
        self.tree = tree
        self.locks = locks
        self.obstacles = obstacles
        self.limits = limits
        self.edits = edits
        self.newFileMode = newFileMode
        self.keyOf = keyOf
        self.report = report
        watcher = try FileWatcher(
            tree,
            directoryLimit: directoryLimit,
            nameLimit: limits.fileCount
        )
    }

    deinit { watcher.stop() }

    // MARK: Which places there are

    /// The places of all keys; removes new files that an earlier process left behind.
    func collectAll() -> [FilePath] {
        var listing = Listing([.root])
        advance(&listing, upTo: .max)
        for path in listing.leftovers { try? tree.remove(path) }
        return listing.paths
    }

    /// Directories whose files are listed, with all below them.
    private struct Listing {
        /// The directories that are left.
        var rest: [FilePath]
        /// The directory that is being listed, and its path; nil if that has ended.
        var names: FileTree.Names?
        var place = FilePath.root
        let includesRoot: Bool
        /// Whether files that are known already are left out.
        let isOfNew: Bool
        /// The files that were found, until they are taken.
        var paths: [FilePath] = []
        /// New files that an earlier process left behind.
        var leftovers: [FilePath] = []
        /// How many directories were listed.
        var listedCount = 0
        var nameCount = 0

        init(_ directories: [FilePath], isOfNew: Bool = false) {
            (rest, includesRoot) = (directories, directories.contains(.root))
            self.isOfNew = isOfNew
        }

        var hasMore: Bool { names != nil || !rest.isEmpty }

        /// The directories that were not listed completely.
        var directories: [FilePath] { names == nil ? rest : rest + [place] }

        /// Leaves out what was not listed yet.
        mutating func end() { (names, rest) = (nil, []) }
    }

    /// Lists directories until so many names and directories were seen, or one cannot be listed.
    ///
    /// If there are more names than the limit, the rest is not read; the complete directory is
    /// refused and read again later.
    private func advance(_ listing: inout Listing, upTo count: Int) {
        let end = listing.nameCount + listing.listedCount + min(count, .max >> 1)
        while listing.nameCount + listing.listedCount < end, listing.hasMore {
            do throws(FileFailure) {
                guard let listed = try step(&listing) else { continue }
                listing.listedCount += 1
                // There may be more names than the limit.
                if !listed.isRoot { noteListed(listed) }
            } catch  where error.code == E2BIG {
                refuse(.root, StateError(.storage, error.sentence))
                isPartial = true
                let place = FileWatcher.Place(path: .root, isTree: true, isWritten: false)
                watcher.note([place], after: 5_000_000_000)
                return listing.end()
            } catch  where error.code == ENOENT || error.code == ENOTDIR {
                // It has no keys; the files that it had are checked one by one.
            } catch {
                refuse(listing.place, StateError(.storage, error.sentence))
            }
        }
        guard !listing.hasMore, listing.includesRoot else { return }
        noteListed(.root)
        if isPartial { (isPartial, isWholeAgain) = (false, true) }
    }

    /// A directory can be listed.
    ///
    /// A key whose file a directory is in the way of stays refused: only an obstacle of the
    /// directory itself is gone.
    private func noteListed(_ directory: FilePath) {
        if obstacles[directory]?.code == .storage { obstacles.remove(directory) }
    }

    /// Opens the next directory, or takes the next name of the one that is open.
    ///
    /// - Returns: The directory if it has no more names.
    private func step(_ listing: inout Listing) throws(FileFailure) -> FilePath? {
        guard let names = listing.names else {
            guard let next = listing.rest.popLast() else { return nil }
            listing.place = next
            listing.names = try FileTree.Names(tree.directory(next))
            return nil
        }
        let directory = listing.place
        let next: (name: [UInt8], isDirectory: Bool)?
        do throws(FileFailure) { next = try names.next() } catch {
            listing.names = nil
            throw error
        }
        guard let (name, isDirectory) = next else {
            listing.names = nil
            return directory
        }
        listing.nameCount += 1
        guard listing.nameCount <= limits.fileCount else {
            throw FileFailure(tooManyNames: limits.fileCount)
        }
        let path = directory.appending(name)
        if isDirectory, FileName.isOfKey(name) {
            if path.mayHoldKeys { listing.rest.append(path) }
        } else if FileName.isOfKey(name) {
            if !listing.isOfNew || known[path] == nil { listing.paths.append(path) }
        } else if !isDirectory, tree.isTemporary(name) {
            listing.leftovers.append(path)
        }
        return nil
    }

    /// Returns true once after the number of names fell below the limit again.
    func takeWholeAgain() -> Bool {
        defer { isWholeAgain = false }
        return isWholeAgain
    }

    // MARK: The places that may have changed

    /// Whether there are more places than were returned.
    var hasMore: Bool { !taken.isEmpty || taken.isCut }

    /// Whether all places that were taken from the watcher were returned, and nothing waits to be
    /// durable.
    var isSettled: Bool { taken.isEmpty && !syncs.isPending }

    /// Some of the places that may have changed and are quiet now, and whether bytes were written
    /// there; more are taken from the watcher when all of them were returned.
    ///
    /// Files that commands wait for are the first.
    ///
    /// - Complexity: O(*n*) in `count`, and in the known files directly in one directory.
    func takeDue(upTo count: Int = .max) -> [(path: FilePath, isWritten: Bool)] {
        let asked = watcher.takeWanted(upTo: count)
        let first = asked.paths.filter { !wanted.paths.contains($0) }
        if wanted.paths.isEmpty { wanted.since = asked.since }
        wanted.paths.formUnion(first)
        takeSynced()
        // The watcher says once that a place is due: what it has is asked for before a look ends.
        if taken.isEmpty { takeFromWatcher(upTo: count) } else { taken.isCut = true }
        taken.isCut = taken.isCut || asked.isCut
        if taken.places.count < count { visit(upTo: count) }
        if taken.unvisited.isEmpty, taken.places.count < count, var listing = taken.listing {
            advance(&listing, upTo: count)
            taken.places += listing.paths.map { ($0, false) }
            listing.paths = []
            taken.listing = listing.hasMore ? listing : nil
        }
        let due = Array(taken.places.suffix(count))
        taken.places.removeLast(due.count)
        var places: [FilePath: Bool] = [:]
        for (path, isWritten) in due where !wanted.paths.contains(path) {
            places[path] = isWritten || places[path] ?? false
        }
        if FileWatcher.lookNanoseconds != nil { postpone(&places) }
        // A file that became a directory is found by what appeared in it.
        for path in Array(places.keys) + first {
            for above in path.ancestors where known[above] != nil && places[above] == nil {
                places[above] = false
            }
        }
        return first.map { ($0, true) } + places.map { ($0.key, $0.value) }
    }

    /// Returns a place later that ``takeDue(upTo:)`` has returned.
    func putBack(_ path: FilePath, isWritten: Bool) {
        taken.places.append((path, isWritten))
        wanted.paths.remove(path)
    }

    /// Has every file returned, instead of those that were taken.
    func takeAll() {
        (taken.places, taken.unvisited) = ([], [])
        taken.listing = Listing([.root])
    }

    /// The places that are due, as the watcher has them, and those that were taken before.
    func takePlaces() -> [FileWatcher.Place] {
        let due = takePlaces(upTo: .max)
        defer { taken = Taken() }
        let directories = taken.unvisited + (taken.listing?.directories ?? [])
        return due + taken.places.map { FileWatcher.Place(path: $0.path, isWritten: $0.isWritten) }
            + directories.map { FileWatcher.Place(path: $0, isTree: true) }
    }

    /// What was returned was looked at, and what was found is recorded.
    func finishLook() {
        watcher.finishLook(at: wanted.paths, since: wanted.since)
        wanted.paths = []
        if isSettled { watcher.finishLook() }
    }

    /// Takes places from the watcher, and reports the directories that it cannot watch.
    private func takePlaces(upTo count: Int) -> [FileWatcher.Place] {
        let (due, failures, isCut) = watcher.takeDue(upTo: count)
        for (path, error) in failures { report(path, error) }
        taken.isCut = isCut
        return due
    }

    private func takeFromWatcher(upTo count: Int) {
        let places = takePlaces(upTo: count)
        taken.places = places.map { ($0.path, $0.isWritten) }
        let trees = Set(places.lazy.filter(\.isTree).map(\.path))
        guard !trees.isEmpty else { return }
        let tops = trees.filter { !$0.ancestors.contains(where: trees.contains) }
        taken.unvisited = Array(tops)
        taken.listing = Listing(taken.unvisited, isOfNew: true)
    }

    /// Takes what is known in directories that may have changed.
    private func visit(upTo count: Int) {
        for _ in 0..<count {
            guard let place = taken.unvisited.popLast() else { return }
            if known[place] != nil || obstacles[place] != nil {
                taken.places.append((place, false))
            }
            taken.unvisited += known.children(of: place).union(obstacles.children(of: place))
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
            let before = known[path]
            known[path] = file
            return FoundFile(path: path, key: key, value: value, status: read, before: before)
        } catch {
            refuse(path, error)
            return nil
        }
    }

    /// Takes a file away from those who may not read its key, as if it were written anew.
    ///
    /// - Throws: ``FileFailure``; others may still read it.
    func restrict(_ path: FilePath) throws(FileFailure) {
        guard tree.form.readers != nil, known[path] != nil else { return }
        try tree.restrict(path)
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
        guard let before = known[path] else { return nil }
        known[path] = nil
        return FoundFile(path: path, key: key, value: nil, status: nil, before: before)
    }

    /// Whether one of about the first 1,000 names in a directory, or below it, may be that of a key.
    ///
    /// A user may make any number of directories in which there are none: those hold no keys.
    private func holdsKeys(_ path: FilePath) -> Bool {
        var listing = Listing([path])
        for _ in 0..<1_000 where listing.hasMore && listing.paths.isEmpty {
            _ = try? step(&listing)
        }
        return !listing.paths.isEmpty
    }

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
