import Glibc

/// What a commit does to the files of one container.
struct FilePart {
    let container: FileContainer
    var steps: [FileStep] = []
    /// What each file that is to be replaced held before.
    var old: [FilePath: ValueMark?] = [:]
    /// What each new file holds.
    var new: [FilePath: ValueMark] = [:]
    /// Edits that are part of the commit: their files hold what it says.
    var adopted: [FilePath] = []
    /// Keys whose files something stands in the way of.
    var obstructed: [(path: FilePath, reason: String)] = []

    init(_ container: FileContainer) { self.container = container }
}

/// A key's last change of a batch.
struct FileChange {
    let key: Bytes
    let value: Bytes?
    let revision: Int64
}

extension FileContainer {
    /// Writes the new files of a batch beside their targets.
    ///
    /// A file that others have changed, and that was not adopted yet, is left: what they made of it comes after this commit. So is one
    /// that cannot be written: its row is stored, its key is refused from then on, and no other key's commit fails for it.
    ///
    /// - Throws: ``StateError``, if nothing can be written to the directory; the new files are gone then, and every other is as it was.
    func stage(_ changes: [FilePath: FileChange]) throws(StateError) -> FilePart {
        var part = FilePart(self)
        let deleted = Set(changes.lazy.filter { $0.value.value == nil }.map(\.key))
        for (path, change) in changes {
            do throws(FileFailure) {
                try stage(change, at: path, deleted, &part)
            } catch  where error.isOfStorage {
                drop(part)
                retry.begin()
                throw problems.fail(error)
            } catch {
                part.old[path] = files?.known[path]?.mark
                part.obstructed.append((path, error.sentence))
            }
        }
        return part
    }

    private func stage(
        _ change: FileChange,
        at path: FilePath,
        _ deleted: Set<FilePath>,
        _ part: inout FilePart
    ) throws(FileFailure) {
        if let edit = adopting[path], change.revision <= edit.revision {
            if change.revision == edit.revision { part.adopted.append(path) }
            return
        }
        guard let files, isInPlace, !comparison.isDue else {
            let known = comparison.isDue ? comparison.known : files?.known ?? comparison.known
            part.old[path] = known[path]?.mark
            let reason = files == nil || !isInPlace ? "is gone" : "is being read"
            part.obstructed.append((path, "the directory \(location) \(reason)"))
            return
        }
        guard let place = try place(of: path, deleted, files, &part) else { return }
        part.old[path] = files.known[path]?.mark
        let status = place.status
        guard let value = change.value else {
            if let status {
                part.steps.append(FileStep(target: path, before: status.stamp))
            } else {
                part.old[path] = nil
            }
            return
        }
        try write(value, to: path, like: status, deleted, files, &part)
    }

    /// What a new file is to replace.
    private struct Place {
        /// Nil where there is no file.
        let status: FileStatus?
    }

    /// What stands in the place of a key that is to be written; nil where it is not to be touched.
    private func place(
        of path: FilePath,
        _ deleted: Set<FilePath>,
        _ files: FileDirectory,
        _ part: inout FilePart
    ) throws(FileFailure) -> Place? {
        let status = try files.tree.status(path)
        let known = files.known[path]
        if status?.stamp == known?.stamp { return Place(status: status) }
        guard status?.isDirectory ?? false, known == nil else {
            // Whatever it is at rest counts, also what it was before.
            files.known[path]?.isDoubtful = true
            files.watcher.note([FileWatcher.Place(path: path, isTree: false, isWritten: true)])
            return nil
        }
        // A directory makes way where all that is in it goes.
        if try files.isEmptied(path, by: deleted) { return Place(status: nil) }
        part.old[path] = .some(nil)
        part.obstructed.append((path, "\(problems.shown(path)) is a directory"))
        return nil
    }

    private func write(
        _ value: Bytes,
        to path: FilePath,
        like old: FileStatus?,
        _ deleted: Set<FilePath>,
        _ files: FileDirectory,
        _ part: inout FilePart
    ) throws(FileFailure) {
        let (parent, obstacle) = try files.tree.nearestDirectory(to: path.parent)
        if let obstacle, !deleted.contains(obstacle) {
            part.obstructed.append((path, "\(problems.shown(obstacle)) is no directory"))
            return
        }
        let place = parent.appending(files.temporaryName())
        let mode = newFileMode(in: files)
        let stamp = try files.tree.write(value, to: place, like: old, mode: mode)
        part.new[path] = ValueMark(value)
        part.steps.append(
            FileStep(
                target: path,
                before: old?.stamp,
                staged: FileStep.Staged(path: place, stamp: stamp)
            )
        )
    }

    /// A file that supersedes none may be read and written by those who may read and write the directory.
    ///
    /// In a sticky one they may not write: it keeps them from the files of each other.
    private func newFileMode(in files: FileDirectory) -> UInt32 {
        let mode = (try? files.tree.status(.root))?.mode ?? 0o600
        return 0o600 | mode & (mode & S_ISVTX == 0 ? 0o066 : 0o044)
    }

    /// Removes the new files of a commit that is none.
    func drop(_ part: FilePart) {
        guard let files else { return }
        for step in part.steps {
            if let staged = step.staged { try? files.tree.remove(staged.path) }
        }
    }

    /// Puts the new files in place, after the rows are on stable storage.
    func publish(_ part: FilePart) {
        for path in part.adopted { adopting[path] = nil }
        for (path, reason) in part.obstructed {
            leaveUnpublished(path, old: part.old[path] ?? nil, reason)
        }
        for step in part.steps { unpublished[step.target] = nil }
        guard !part.steps.isEmpty else { return }
        guard let files else {
            leaveUnpublished(part, "the directory \(location) is gone")
            return
        }
        var publisher = FilePublisher(files.tree, leavesOut: true) { files.temporaryName() }
        do throws(FileFailure) {
            try publisher.take(part.steps)
        } catch {
            drop(part)
            // The reason is one for all of them, and names none.
            leaveUnpublished(part, "the directory \(location) cannot be written: \(error.reason)")
            return
        }
        for step in part.steps {
            files.known[step.target] = step.staged.map {
                KnownFile(stamp: $0.stamp, mark: part.new[step.target])
            }
            problems.accept(step.target)
        }
        // Order matters: nothing tries again what may be written now.
        problems.allowWrites()
        if unpublished.isEmpty { retry.end() }
        for (path, failure) in publisher.obstructed {
            files.known[path] = nil
            leaveUnpublished(path, old: part.old[path] ?? nil, failure.sentence)
        }
        note(edited: publisher.edited, files)
        files.watcher.forgetOwn(part.steps.map(\.target)) { path in
            (try? files.tree.status(path))?.stamp == files.known[path]?.stamp
        }
    }

    /// What others did in the moment of a commit comes after it.
    private func note(edited: [FilePath], _ files: FileDirectory) {
        guard !edited.isEmpty else { return }
        for path in edited { files.known[path] = KnownFile(stamp: .none) }
        files.watcher.note(
            edited.map { FileWatcher.Place(path: $0, isTree: false, isWritten: true) }
        )
    }

    private func leaveUnpublished(_ part: FilePart, _ reason: String) {
        for step in part.steps {
            files?.known[step.target] = nil
            leaveUnpublished(step.target, old: part.old[step.target] ?? nil, reason)
        }
    }

    // MARK: After a failure

    /// Brings a file to the value of its row, unless somebody has made something else of it.
    ///
    /// - Returns: Whether that is settled: what somebody has made of it is an edit, to be looked at.
    func settle(_ path: FilePath, old: ValueMark?, to value: [UInt8]?) -> Bool {
        guard let files, isInPlace else { return false }
        do {
            var present: [UInt8]?
            let status = try files.tree.status(path)
            if value == nil, status?.isDirectory ?? false {
                // Keys below it: the file is gone.
                files.known[path] = nil
            } else if status != nil {
                let contents = try files.tree.contents(of: path, limit: limits.valueByteCount)
                guard case .value(let bytes, let read)? = contents else { return false }
                present = bytes
                files.known[path] = KnownFile(stamp: read.stamp, mark: ValueMark(bytes))
            } else {
                files.known[path] = nil
            }
            if present == value {
                files.syncParents(of: [path])
            } else if present.map({ ValueMark($0) }) == old {
                guard try replace(path, like: status, with: value, files) else { return false }
            } else {
                note(edited: [path], files)
            }
        } catch {
            let sentence = (error as? FileFailure)?.sentence ?? "\(error)"
            leaveUnpublished(path, old: old, sentence)
            return false
        }
        unpublished[path] = nil
        problems.obstacles.remove(path)
        return true
    }

    private func replace(
        _ path: FilePath,
        like status: FileStatus?,
        with value: [UInt8]?,
        _ files: FileDirectory
    ) throws -> Bool {
        var part = FilePart(self)
        part.old[path] = files.known[path]?.mark
        if let value {
            try value.withUnsafeBytes {
                try write($0, to: path, like: status, [], files, &part)
            }
        } else if let status {
            part.steps.append(FileStep(target: path, before: status.stamp))
        }
        guard part.obstructed.isEmpty else { return false }
        unpublished[path] = nil
        publish(part)
        return unpublished[path] == nil
    }
}

extension FileStamp {
    /// That of no file.
    static let none = FileStamp(device: 0, inode: 0, byteCount: -1, modified: 0)
}
