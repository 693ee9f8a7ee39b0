/// What a commit does to the files of one container.
struct FilePart {
    let container: FileContainer
    var staged = StagedFiles()
    /// The digest of each file before it is replaced.
    var old: [FilePath: ValueDigest?] = [:]
    /// Edits that are part of the commit: their files hold the values already.
    var adopted: [FilePath] = []
    /// Keys whose files cannot be written, and why.
    var obstructed: [(path: FilePath, reason: String)] = []

    /// Leaves out a file; `known` is its known state.
    mutating func leaveOut(_ path: FilePath, _ known: KnownFile?, _ reason: String) {
        old[path] = known?.digest
        obstructed.append((path, reason))
    }
}

extension FileContainer {
    /// Writes the new files of a batch beside their targets.
    ///
    /// A file that others have changed, and that was not adopted yet, is left alone: their edit
    /// comes after this commit. A file that cannot be written is left out, too: its change is
    /// stored, writes to its key are refused from then on, and no other key's commit fails because
    /// of it.
    ///
    /// - Throws: ``StateError`` if nothing can be written to the directory; the new files are
    ///   removed then, and all others are unchanged.
    func stage(_ changes: [FileChange]) throws(StateError) -> FilePart {
        var part = FilePart(container: self)
        let changes = changes.filter { change in
            guard let edit = adopting[change.path], change.revision <= edit.revision else {
                return true
            }
            if change.revision == edit.revision { part.adopted.append(change.path) }
            return false
        }
        guard let files, isInPlace, !comparison.isLost else {
            let reason = files == nil || !isInPlace ? "is missing" : "is being read"
            for path in changes.map(\.path) {
                // What was compared already is known better than before.
                let known = files?.known[path] ?? comparison.known[path]
                part.leaveOut(path, known, "the directory \(location) \(reason)")
            }
            return part
        }
        do throws(FileFailure) { try stage(changes, in: files, &part) } catch {
            retry.begin()
            throw problems.fail(error)
        }
        return part
    }

    private func stage(
        _ changes: [FileChange],
        in files: FileDirectory,
        _ part: inout FilePart
    ) throws(FileFailure) {
        part.staged = try files.stage(changes)
        for step in part.staged.steps { part.old[step.target] = files.known[step.target]?.digest }
        for (path, obstacle) in part.staged.obstructed {
            part.leaveOut(path, files.known[path], reason(obstacle, at: path))
        }
        files.lookAgain(at: part.staged.edited)
    }

    private func reason(_ obstacle: StagedFiles.Obstacle, at path: FilePath) -> String {
        switch obstacle {
        case .blocked(let place):
            "\(problems.shown(place)) is \(place == path ? "a" : "no") directory"
        case .failure(let failure): failure.sentence
        }
    }

    /// Puts the new files into place, after the changes are on stable storage.
    func publish(_ part: FilePart) {
        for path in part.adopted { adopting[path] = nil }
        for (path, reason) in part.obstructed {
            leaveUnpublished(path, old: part.old[path] ?? nil, reason)
        }
        let targets = part.staged.steps.map(\.target)
        for path in targets { unpublished[path] = nil }
        guard !targets.isEmpty else { return }
        guard let files else {
            leaveUnpublished(part, "the directory \(location) is missing")
            return
        }
        var publisher = FilePublisher(files.tree, leavesOut: true)
        do throws(FileFailure) {
            try publisher.take(part.staged.steps)
        } catch {
            files.drop(part.staged)
            // The reason is the same for all of them, and names no file.
            leaveUnpublished(part, "the directory \(location) cannot be written: \(error.reason)")
            return
        }
        files.finish(part.staged)
        for path in targets { problems.accept(path) }
        // Order matters: what may be written now must not be tried again.
        problems.allowWrites()
        if unpublished.isEmpty { retry.end() }
        for (path, failure) in publisher.obstructed {
            files.known[path] = nil
            leaveUnpublished(path, old: part.old[path] ?? nil, failure.sentence)
        }
        // Edits at the moment of a commit come after it.
        files.lookAgain(at: publisher.edited)
        let walk = files.tree.walk()
        files.watcher.forgetOwn(targets) { path in
            (try? walk.status(path))?.stamp == files.known[path]?.stamp
        }
    }

    private func leaveUnpublished(_ part: FilePart, _ reason: String) {
        for path in part.staged.steps.map(\.target) {
            files?.known[path] = nil
            leaveUnpublished(path, old: part.old[path] ?? nil, reason)
        }
    }

    /// Sets a file to the stored value of its key, unless somebody has edited it.
    ///
    /// - Returns: Whether that is done; an edit by somebody is left to be read.
    func settle(_ path: FilePath, old: ValueDigest?, to value: [UInt8]?) -> Bool {
        guard let files, isInPlace else { return false }
        do {
            var present: [UInt8]?
            let status = try files.tree.status(path)
            if value == nil, status?.isDirectory ?? false {
                // There are keys below it: the file is gone.
                files.known[path] = nil
            } else if status != nil {
                let contents = try files.tree.contents(of: path, limit: limits.valueByteCount)
                guard case .value(let bytes, let read)? = contents else { return false }
                present = bytes
                files.known[path] = KnownFile(stamp: read.stamp, digest: ValueDigest(bytes))
            } else {
                files.known[path] = nil
            }
            if present == value {
                files.syncParents(of: [path])
            } else if present.map({ ValueDigest($0) }) == old {
                guard try replace(path, with: value, files) else { return false }
            } else {
                files.lookAgain(at: [path])
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
        with value: [UInt8]?,
        _ files: FileDirectory
    ) throws -> Bool {
        var part = FilePart(container: self)
        try (value ?? []).withUnsafeBytes { bytes in
            let change = FileChange(path: path, value: value == nil ? nil : bytes, revision: 0)
            try stage([change], in: files, &part)
        }
        unpublished[path] = nil
        publish(part)
        return unpublished[path] == nil
    }
}
