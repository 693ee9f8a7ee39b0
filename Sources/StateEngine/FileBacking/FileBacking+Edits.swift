import Glibc

/// What others do to the files.
extension FileBacking {
    /// Reads every value at the start, and removes what a crash left of new files.
    ///
    /// - Returns: How many there are.
    func readAll(_ tree: FileTree, _ receive: (borrowing StoredChange) -> Void) -> Int {
        var paths: [FilePath] = []
        var leftovers: [FilePath] = []
        collect(.root, in: tree, &paths, &leftovers)
        for path in leftovers { try? tree.remove(path) }
        var ordinal: Int32 = 0
        for path in paths {
            guard let change = look(at: path, isWritten: false, in: tree), let value = change.value
            else { continue }
            change.key.withUnsafeBytes { key in
                value.withUnsafeBytes { value in
                    Array((change.writer?.description ?? "").utf8).withUnsafeBytes { cause in
                        receive(
                            StoredChange(
                                revision: 1,
                                ordinal: ordinal,
                                key: key,
                                value: value,
                                created: 1,
                                owner: change.writer?.uid ?? .max,
                                version: 1,
                                time: change.time,
                                cause: cause,
                                previousRevision: 0,
                                previousOrdinal: 0
                            )
                        )
                    }
                }
            }
            ordinal += 1
        }
        return Int(ordinal)
    }

    /// The places of keys below `directory`, and what is left of new files of an earlier start.
    private func collect(
        _ directory: FilePath,
        in tree: FileTree,
        _ paths: inout [FilePath],
        _ leftovers: inout [FilePath]
    ) {
        var subdirectories: [FilePath] = []
        do throws(FileFailure) {
            try tree.forEachName(in: directory) { name, isDirectory in
                let path = directory.appending(name)
                if isDirectory, FileName.isOfKey(name) {
                    subdirectories.append(path)
                } else if FileName.isOfKey(name) {
                    paths.append(path)
                } else if name.starts(with: FileTree.temporaryMark) {
                    leftovers.append(path)
                }
            }
            allow(directory)
        } catch {
            // A directory that is gone, or no directory any more, has no keys; what it had is looked at one by one.
            if error.code != ENOENT, error.code != ENOTDIR {
                refuse(directory, StateError(.storage, error.sentence))
            }
        }
        for path in subdirectories { collect(path, in: tree, &paths, &leftovers) }
    }

    /// What others have changed, as far as it has come to rest.
    public func takeOutsideChanges() -> [OutsideChange] {
        guard let tree, let watcher else { return [] }
        let (due, failures) = watcher.takeDue()
        for (path, error) in failures {
            onUnreadable(Unreadable(path: path.description, error: error))
        }
        var places: [FilePath: Bool] = [:]
        for place in due { places[place.path] = place.isWritten }
        addTrees(due, in: tree, to: &places)
        // A file that has become a directory is met by what appeared in it.
        for path in places.keys {
            for above in path.ancestors where known[above] != nil && places[above] == nil {
                places[above] = false
            }
        }
        let found = places.compactMap { look(at: $0.key, isWritten: $0.value, in: tree) }
        for parent in Set(places.keys.map(\.parent)) where !found.isEmpty {
            try? tree.directory(parent).sync()
        }
        defer { met = [] }
        let again = Set(found.map(\.key))
        return met.filter { !again.contains($0.key) } + found
    }

    private func addTrees(
        _ due: [FileWatcher.Place],
        in tree: FileTree,
        to places: inout [FilePath: Bool]
    ) {
        let trees = Set(due.lazy.filter(\.isTree).map(\.path))
        guard !trees.isEmpty else { return }
        let obstructed = obstacles.withLock { Array($0.keys) }
        for path in Array(known.keys) + obstructed
        where path.ancestors.contains(where: { trees.contains($0) }) {
            places[path] = places[path] ?? false
        }
        var paths: [FilePath] = []
        var leftovers: [FilePath] = []
        for path in trees where !path.ancestors.contains(where: { trees.contains($0) }) {
            collect(path, in: tree, &paths, &leftovers)
        }
        for path in paths { places[path] = places[path] ?? false }
    }

    /// Looks at one place, and notes what is there.
    ///
    /// A file that was written (`isWritten`) is read though it seems to be the one that is known.
    ///
    /// - Returns: What it holds, where that may be new; nil where nothing changed, it holds no value, or is not at rest.
    func look(at path: FilePath, isWritten: Bool, in tree: FileTree) -> OutsideChange? {
        guard let key = FileName.key(of: path) else { return nil }
        do throws(StateError) {
            guard let status = try status(of: path, in: tree) else {
                allow(path)
                return forget(path, key)
            }
            if status.isDirectory {
                if known[path] == nil { return nil }
                if holdsKeys(path, in: tree) { return forget(path, key) }
            }
            let isObstacle = obstacles.withLock { $0[path] != nil }
            if status.stamp == known[path], !isWritten, !isObstacle { return nil }
            guard let contents = try tree.contents(of: path, limit: valueByteCount) else {
                return forget(path, key)
            }
            guard case .value(let value, let read) = contents else {
                watcher?.note(FileWatcher.Place(path: path, isTree: false, isWritten: true))
                return nil
            }
            known[path] = read.stamp
            if let refusal = refusalToReplace(path, read) {
                refuse(path, refusal)
            } else {
                allow(path)
            }
            return OutsideChange(
                key: key.bytes,
                value: value,
                writer: .file(uid: read.uid, gid: read.gid),
                time: read.stamp.modified / 1_000_000
            )
        } catch {
            refuse(path, error)
            return nil
        }
    }

    private func status(of path: FilePath, in tree: FileTree) throws(StateError) -> FileStatus? {
        do throws(FileFailure) { return try tree.status(path) } catch {
            throw StateError(.storage, error.sentence)
        }
    }

    private func forget(_ path: FilePath, _ key: Key) -> OutsideChange? {
        guard known.removeValue(forKey: path) != nil else { return nil }
        return OutsideChange(
            key: key.bytes,
            value: nil,
            writer: .file(uid: .max, gid: .max),
            time: LocalKeyspace.now()
        )
    }

    private func holdsKeys(_ path: FilePath, in tree: FileTree) -> Bool {
        var paths: [FilePath] = []
        var leftovers: [FilePath] = []
        collect(path, in: tree, &paths, &leftovers)
        return !paths.isEmpty
    }

    /// A file of another owner can be read, and not be replaced by one that is his.
    private func refusalToReplace(_ path: FilePath, _ status: FileStatus) -> StateError? {
        let user = geteuid()
        guard user != 0, status.uid != user else { return nil }
        return StateError(.noPermission, "\(path) belongs to uid \(status.uid)")
    }

    /// From now on a write to the place is refused.
    func refuse(_ path: FilePath, _ error: StateError) {
        let isNew = obstacles.withLock { $0.updateValue(error, forKey: path) != error }
        if isNew { onUnreadable(Unreadable(path: path.description, error: error)) }
    }

    func allow(_ path: FilePath) {
        obstacles.withLock { obstacles in
            if !obstacles.isEmpty { obstacles[path] = nil }
        }
    }
}
