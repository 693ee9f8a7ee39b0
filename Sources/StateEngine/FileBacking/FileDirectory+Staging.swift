import StatePlatform

/// What happens to an edit that a commit finds before it was adopted.
enum EditOrder {
    /// It comes before the commit: nothing is staged, and the commit is repeated on top of it.
    case below
    /// It comes after the commit: its file is left as it is, and the other files are staged.
    case after

    /// Returns true for a failure that ends the commit; any other leaves out one file.
    fileprivate func endsCommit(_ failure: FileFailure) -> Bool {
        switch self {
        case .below: !failure.isOwnership
        case .after: failure.isOfStorage
        }
    }
}

/// The change that a commit makes to one file.
struct FileChange {
    let path: FilePath
    /// Nil if the key is deleted; the bytes live as long as the batch.
    let value: Bytes?
    let revision: Int64
}

extension Array {
    /// The last element for each identity, in order.
    func lastOfEach<ID: Hashable>(_ identity: (Element) -> ID) -> [Element] {
        var seen: Set<ID> = []
        return reversed().filter { seen.insert(identity($0)).inserted }.reversed()
    }
}

/// The new files of a commit, written beside their targets.
struct StagedFiles {
    /// Why a file is left out.
    enum Obstacle {
        /// Something is there, or on the path to it.
        case blocked(by: FilePath)
        case failure(FileFailure)
    }

    /// How the new files take their places.
    fileprivate(set) var steps: [FileStep] = []
    /// The digest of the contents of each new file.
    fileprivate var digests: [FilePath: ValueDigest] = [:]
    /// Files that others have changed since they were read.
    fileprivate(set) var edited: [FilePath] = []
    fileprivate(set) var obstructed: [(path: FilePath, obstacle: Obstacle)] = []
}

/// The first half of a commit: compares the files with their known states, and writes new ones.
extension FileDirectory {
    /// Writes the new files of a commit beside their targets, and syncs them.
    ///
    /// With ``EditOrder/below``, all of them are removed if a file was edited or is obstructed.
    ///
    /// - Parameter changes: One for each file.
    /// - Returns: What is staged, and what is left out.
    /// - Throws: ``FileFailure``; the new files are removed then.
    /// - Complexity: O(*n*) in the bytes of the values, with one sync for each; each directory on
    ///   the way to a file is opened once.
    func stage(_ changes: [FileChange]) throws(FileFailure) -> StagedFiles {
        let changes = changes.sorted { $0.path < $1.path }
        let walk = tree.walk()
        let deleted = Set(changes.lazy.filter { $0.value == nil }.map(\.path))
        var staged = StagedFiles()
        var free: [(change: FileChange, old: FileStatus?)] = []
        for change in changes {
            do throws(FileFailure) {
                try look(at: change, walk, deleted, &staged, &free)
            } catch  where !edits.endsCommit(error) {
                staged.obstructed.append((change.path, .failure(error)))
            }
        }
        guard edits == .after || staged.edited.isEmpty else { return staged }
        for (change, old) in free {
            do throws(FileFailure) {
                try stage(change, walk, like: old, deleted, &staged)
            } catch  where !edits.endsCommit(error) {
                staged.obstructed.append((change.path, .failure(error)))
            } catch {
                drop(staged)
                throw error
            }
            guard edits == .after || staged.obstructed.isEmpty else {
                drop(staged)
                break
            }
        }
        return staged
    }

    /// Adds a change to `free` if the commit may touch its file, with the status of the present
    /// file.
    private func look(
        at change: FileChange,
        _ tree: FileTree,
        _ deleted: Set<FilePath>,
        _ staged: inout StagedFiles,
        _ free: inout [(change: FileChange, old: FileStatus?)]
    ) throws(FileFailure) {
        let path = change.path
        let status = try tree.status(path)
        if status?.stamp == known[path]?.stamp { return free.append((change, status)) }
        let isDirectory = known[path] == nil && status?.isDirectory ?? false
        // A directory is replaced if everything in it is deleted.
        if isDirectory, try isEmptied(path, by: deleted) { return free.append((change, nil)) }
        if isDirectory, edits == .after {
            staged.obstructed.append((path, .blocked(by: path)))
        } else {
            staged.edited.append(path)
        }
    }

    /// Whether everything in a directory is among `deleted`, and it is not empty.
    private func isEmptied(
        _ path: FilePath,
        by deleted: Set<FilePath>
    ) throws(FileFailure) -> Bool {
        var rest = [path]
        while let directory = rest.popLast() {
            var (isEmpty, isKept) = (true, false)
            try tree.forEachName(in: directory) { name, isDirectory in
                isEmpty = false
                let below = directory.appending(name)
                if !isDirectory {
                    isKept = isKept || !deleted.contains(below)
                } else if rest.count < deleted.count {
                    rest.append(below)
                } else {
                    // Each of them would hold at least one of the deleted files.
                    isKept = true
                }
            }
            if isEmpty || isKept { return false }
        }
        return true
    }

    private func stage(
        _ change: FileChange,
        _ tree: FileTree,
        like old: FileStatus?,
        _ deleted: Set<FilePath>,
        _ staged: inout StagedFiles
    ) throws(FileFailure) {
        let target = change.path
        guard let value = change.value else {
            if let old { staged.steps.append(FileStep(target: target, before: old.stamp)) }
            return
        }
        let (parent, obstacle) = try tree.nearestDirectory(to: target.parent)
        if let obstacle, !deleted.contains(obstacle) {
            staged.obstructed.append((target, .blocked(by: obstacle)))
            return
        }
        let path = parent.appending(tree.temporaryName())
        let stamp = try tree.write(value, to: path, like: old, mode: newFileMode ?? inheritedMode)
        staged.digests[target] = ValueDigest(value)
        staged.steps.append(
            FileStep(
                target: target,
                before: old?.stamp,
                staged: FileStep.Staged(path: path, stamp: stamp)
            )
        )
    }

    /// Read and write permission for the users who may read and write the directory.
    ///
    /// In a sticky directory others may not write: it protects the files of each user from the
    /// others.
    private var inheritedMode: mode_t {
        let mode = (try? tree.status(.root))?.mode ?? 0o600
        return 0o600 | mode & (mode & S_ISVTX == 0 ? 0o066 : 0o044)
    }

    /// Removes the new files of a commit that did not happen.
    func drop(_ staged: StagedFiles) {
        let tree = tree.walk()
        for step in staged.steps {
            if let staged = step.staged { try? tree.remove(staged.path) }
        }
    }

    /// The new files are in their places.
    func finish(_ staged: StagedFiles) {
        for step in staged.steps {
            known[step.target] = step.staged.map {
                KnownFile(stamp: $0.stamp, digest: staged.digests[step.target])
            }
        }
    }

    /// Has files read again, as edits even if nothing changes; until then no commit touches
    /// them.
    func lookAgain(
        at paths: [FilePath],
        after nanoseconds: Int64 = FileWatcher.quietNanoseconds
    ) {
        for path in paths {
            var file = known[path] ?? KnownFile(stamp: .none)
            (file.stamp, file.isDoubtful) = (.none, true)
            known[path] = file
        }
        watcher.note(paths.map { FileWatcher.Place(path: $0) }, after: nanoseconds)
    }
}

extension FileStamp {
    /// The stamp of a missing file.
    static let none = FileStamp(device: 0, inode: 0, byteCount: -1, modified: 0)
}
