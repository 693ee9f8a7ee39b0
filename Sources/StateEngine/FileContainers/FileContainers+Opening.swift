import StatePlatform
import StateSystem

/// The start: makes files and entries agree.
extension FileContainers {
    /// Opens every directory, finishes what the last process began, and adopts what differs.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - keyspace: The entries of the store.
    /// - Throws: ``StateError`` if a directory cannot be used; the files are unchanged.
    func open(_ store: any PendingFileListBacking, _ keyspace: LocalKeyspace) throws {
        try FileContainers.checkOverlaps(containers.map(\.location))
        let record = try store.fileContainers()
        let former = FormerFiles(record)
        let held = { (container: FileContainer, key: Key) in container.heldFile(of: key, former) }
        for container in containers {
            let hasFiles = keys(of: container, in: keyspace).contains { held(container, $0) }
            let place = former.places[container.location]
            // Of a copied store, neither the original's temporary files are in use: this process
            // has the lock.
            container.temporaryOwners = [FormerFiles.text(keyspace.epoch)]
            if let epoch = former.epoch { container.temporaryOwners.append(epoch) }
            try container.open(expectsFiles: hasFiles, noted: place, wake)
        }
        let text = store.takePendingFileList()
        try settle(text, where: held) { keyspace.entry(for: $0)?.value }
        let left = LeftFiles(former, now: self, in: keyspace, text.flatMap { PendingFileList($0) })
        let now = FormerFiles(rules, keyspace.epoch, at: former.places.merging(places) { $1 })
        let isAnew = now.text != record
        var exports: [FileExport] = []
        var found: [[FoundFile]] = []
        do {
            // Order matters: if this crashes, a start under other rules must know whose files are
            // written from here on.
            if isAnew {
                try store.setFileContainers(former.filling(now, rules, keyspace.epoch).text)
            }
            for container in containers {
                found.append(compare(container, with: keyspace, left) { held(container, $0) })
                try export(container, keyspace, left, &exports) { !held(container, $0) }
            }
            try recordUnpublished(in: store)
            onStep(0)
            if isAnew { try store.setFileContainers(now.leaving(former).text) }
        } catch {
            // Files that were written and belong to no key yet would count as edits the next time.
            let kept = exports.compactMap { $0.takeBack() }
            if isAnew { try? store.setFileContainers(former.keeping(former.kept + kept).text) }
            throw error
        }
        for (container, found) in zip(containers, found) {
            adopt(found, of: container, into: keyspace)
            container.files?.finishLook()
        }
        let kept = left.remove(now: self, notice)
        // If this record cannot be written, the next start checks again.
        if isAnew { try? store.setFileContainers(now.keeping(kept).text) }
    }

    /// The identities of the directories in use, by their paths.
    var places: [String: DirectoryIdentity] {
        var places: [String: DirectoryIdentity] = [:]
        for container in containers {
            places[container.location] = container.used.withLock { $0.identity }
        }
        return places
    }

    /// Finishes what a commit had not reached, by the list of pending files in the store.
    ///
    /// - Parameters:
    ///   - text: The list; nil if there is none.
    ///   - hadFile: Whether a key had its file in the same place before: if it is missing now, it
    ///     was removed.
    ///   - value: The value that the store has of a key.
    /// - Throws: ``StateError/Code/corrupt`` if the list is malformed.
    func settle(
        _ text: String?,
        where hadFile: (FileContainer, Key) -> Bool = { _, _ in true },
        value: (Key) -> [UInt8]?
    ) throws(StateError) {
        guard let text else { return }
        storedList = .whole
        guard let list = PendingFileList(text) else {
            throw StateError(
                .corrupt,
                "the list of pending files in the store is malformed; restore the store from a copy"
            )
        }
        for (key, old) in list.entries {
            guard let key = try? Key(bytes: key),
                let container = key.bytes.withUnsafeBytes({ container(of: $0) }),
                let path = try? key.bytes.withBorrowed(container.keys.path),
                hadFile(container, key) || container.files?.isAbsent(path) == false
            else { continue }
            if !container.settle(path, old: old, to: value(key)) {
                container.leaveUnpublished(
                    path,
                    old: old,
                    "it was not written before the last stop"
                )
            }
        }
        wakeForRetries()
    }

    /// Writes files for the stored keys that have none: because they had none here before, or
    /// because the file of another key is in their place, left by a start under other rules that
    /// did not finish.
    ///
    /// Keys that can have no file, and keys in whose place something else is, keep their values
    /// and are named: whoever may write keys can prepare them.
    ///
    /// - Throws: ``StateError`` if a file that is in the place cannot be read.
    private func export(
        _ container: FileContainer,
        _ keyspace: LocalKeyspace,
        _ left: LeftFiles,
        _ exports: inout [FileExport],
        where isNew: (Key) -> Bool
    ) throws {
        for key in keys(of: container, in: keyspace) {
            guard let path = try? key.bytes.withBorrowed(container.keys.path) else { continue }
            let isNew = isNew(key)
            guard isNew || left.mayHaveFile(at: path, in: container.location) else { continue }
            guard let files = container.files, let value = keyspace.entry(for: key)?.value
            else { continue }
            // The file of another key that has left is replaced.
            let former = files.known[path] == nil ? nil : try container.value(at: path)
            if files.known[path] == nil {
                guard isNew, keyspace.obstacle(to: key, in: container) == nil else { continue }
            } else {
                let location = container.location
                guard let former, former != value, left.has(former, at: path, in: location) else {
                    continue
                }
            }
            let old = former.map { ValueDigest($0) }
            guard container.settle(path, old: old, to: value) else {
                if container.unpublished[path] == nil {
                    container.leaveUnpublished(path, old: old, "something else is there")
                }
                continue
            }
            let new = ValueDigest(value)
            exports.append(FileExport(container: container, path: path, old: former, new: new))
        }
    }

    /// Has the store know which keys have no file yet: the next start would take them for removed.
    private func recordUnpublished(in store: any PendingFileListBacking) throws {
        guard storedList == .none, containers.contains(where: { !$0.unpublished.isEmpty }) else {
            return
        }
        // The list is needed although no commit has begun.
        storedList = .whole
        var publication = FilePublication()
        addPendingFiles(to: &publication)
        guard case .set(let text) = publication.listChange else { return }
        try store.setPendingFileList(text)
        storedList = .minimal
        wakeForRetries()
    }

    /// Refuses directories one of which is inside another, including through links.
    package static func checkOverlaps(_ directories: [String]) throws(StateError) {
        let resolved = directories.map { directory -> [Substring] in
            guard let path = realpath(directory, nil) else {
                return TrustedPath.parts(of: directory)
            }
            defer { free(path) }
            return TrustedPath.parts(of: String(cString: path))
        }
        // Whatever is inside a directory comes directly behind it.
        let order = resolved.indices.sorted {
            resolved[$0].lexicographicallyPrecedes(resolved[$1], by: { $0 < $1 })
        }
        for (outer, inner) in zip(order, order.dropFirst())
        where resolved[inner].starts(with: resolved[outer]) {
            let (first, second) = (min(outer, inner), max(outer, inner))
            throw StateError(
                .err,
                "the directories \(directories[first]) and \(directories[second]) overlap; "
                    + "each rule needs one of its own"
            )
        }
    }

    /// Refuses directories that this process could not use.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the directory.
    package func check() throws(StateError) {
        try FileContainers.checkOverlaps(containers.map(\.location))
        if let first = unusable.first { throw StateError(.err, first.message) }
    }

    /// The directories that this process could not use, each with the reason.
    package var unusable: [(directory: String, message: String)] {
        containers.compactMap { container in
            do { try container.check() } catch {
                let message = (error as? StateError)?.message ?? "\(error)"
                return (container.location, message)
            }
            return nil
        }
    }
}

/// A file that was written for a key that is new in a directory.
private struct FileExport {
    let container: FileContainer
    let path: FilePath
    /// What it held before; nil if there was none.
    let old: [UInt8]?
    let new: ValueDigest

    /// Restores the former contents, unless somebody has edited the file.
    ///
    /// - Returns: The file, if that failed.
    func takeBack() -> KeptFiles? {
        guard !container.settle(path, old: new, to: old) else { return nil }
        var kept = KeptFiles(
            directory: container.location,
            prefixByteCount: container.keys.prefix.count
        )
        if let key = container.keys.key(of: path) { kept.digests.entries = [(key.bytes, new)] }
        return kept
    }
}

extension FileContainer {
    /// Whether a key had its file here when the store was last open.
    func heldFile(of key: Key, _ former: FormerFiles) -> Bool {
        key.bytes.withUnsafeBytes { former.rule(of: $0) }.map(isPlace) ?? false
    }

    /// Whether a rule gives a key the same place as this container.
    func isPlace(of rule: FileRule) -> Bool {
        rule.directory == location && rule.prefixByteCount == keys.prefix.count
    }

    /// The value in a file; nil if it does not hold one.
    fileprivate func value(at path: FilePath) throws -> [UInt8]? {
        let contents = try files?.tree.contents(of: path, limit: limits.valueByteCount)
        guard case .value(let bytes, _)? = contents else { return nil }
        return bytes
    }

    /// Whether the directory could be used; nothing is made in it.
    func check() throws {
        let tree = try FileTree(trusted: location, isShared: isShared)
        guard faccessat(tree.root.descriptor, ".", W_OK | X_OK, AT_EACCESS) == 0 else {
            throw FileContainer.unusable(location, FileFailure("access", .root))
        }
        let uid = geteuid()
        if let owner = form.uid, owner != uid, uid != 0 {
            throw StateError(
                .storage,
                "the files in \(location) cannot get the owner uid \(owner): only root can give files "
                    + "away, and this is uid \(uid)"
            )
        }
    }
}
