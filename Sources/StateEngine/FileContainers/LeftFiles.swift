/// Files that keys have left, because other rules apply now.
struct LeftFiles {
    struct File {
        let key: Key
        let prefixByteCount: Int
        /// The digests recorded when it could not be removed.
        var digests: [ValueDigest?] = []
        /// Whether it may hold the current value of its key.
        var isCurrent = false
    }

    /// The files by directory and path; rules of different times may have had different keys there.
    private(set) var files: [String: [FilePath: [File]]] = [:]
    /// What the files of an unfinished commit may hold instead of the current values.
    private let pendingDigests: [[UInt8]: ValueDigest?]
    private let keyspace: LocalKeyspace
    /// The identities of the directories, by their paths.
    private let places: [String: DirectoryIdentity]
    /// Whether this store wrote them, and not one of which it is a copy.
    private let isOwner: Bool

    /// Finds them, from where keys lived before, where they live now, and the list of pending
    /// files.
    ///
    /// - Complexity: O(*n*) in the keys of the rules under which any lived in files.
    init(
        _ former: FormerFiles,
        now containers: FileContainers?,
        in keyspace: LocalKeyspace,
        _ list: PendingFileList?
    ) {
        self.keyspace = keyspace
        places = former.places
        isOwner = former.epoch == FormerFiles.text(keyspace.epoch)
        let entries = (list?.entries ?? []).map { ($0.key, $0.old) }
        pendingDigests = Dictionary(entries) { first, _ in first }
        for kept in former.kept {
            for (key, digest) in kept.digests.entries {
                guard let key = try? Key(bytes: key) else { continue }
                add(key, kept.directory, kept.prefixByteCount) { $0.digests.append(digest) }
            }
        }
        var found: [(Key, FileRule)] = []
        let find = { (key: Bytes) in
            for rule in former.rules(of: key)
            where !(containers?.container(of: key)?.isPlace(of: rule) ?? false) {
                found.append((Key(verified: key), rule))
            }
        }
        let keys = former.keys
        if !keys.patterns.isEmpty {
            keyspace.withCore { core in
                core.forEachDurable(keys, after: nil) { record in
                    find(record.key)
                    return true
                }
            }
        }
        // A deleted key may still have its file.
        for (key, _) in entries { key.withUnsafeBytes(find) }
        for (key, rule) in found {
            guard let directory = rule.directory else { continue }
            add(key, directory, rule.prefixByteCount) { $0.isCurrent = true }
        }
    }

    private mutating func add(
        _ key: Key,
        _ directory: String,
        _ prefixByteCount: Int,
        _ body: (inout File) -> Void
    ) {
        guard
            let path = try? key.bytes.withBorrowed({ (key) throws(StateError) in
                try FileName.path(of: key, from: prefixByteCount)
            })
        else { return }
        var candidates = files[directory]?[path] ?? []
        let known = candidates.firstIndex {
            $0.key == key && $0.prefixByteCount == prefixByteCount
        }
        if known == nil { candidates.append(File(key: key, prefixByteCount: prefixByteCount)) }
        body(&candidates[known ?? candidates.count - 1])
        files[directory, default: [:]][path] = candidates
    }

    /// Whether there may be a file of a key that has left.
    func mayHaveFile(at path: FilePath, in directory: String) -> Bool {
        files[directory]?[path] != nil
    }

    /// Whether a file is that of a key that has left, and nobody has edited it.
    func has(_ value: [UInt8]?, at path: FilePath, in directory: String) -> Bool {
        guard let value, let candidates = files[directory]?[path] else { return false }
        return candidates.contains { isOf($0, value) }
    }

    private func isOf(_ file: File, _ value: [UInt8]) -> Bool {
        if keyspace.entry(for: file.key)?.value == value { return true }
        let digest = ValueDigest(value)
        return file.digests.contains(digest) || (pendingDigests[file.key.bytes] ?? nil) == digest
    }

    // MARK: Removing them

    /// Removes them.
    ///
    /// A file that somebody has edited is left and named in a notice: its contents are nowhere
    /// else.
    ///
    /// - Returns: Those that could not be read or removed. They may be back some day, with older
    ///   contents than their keys.
    /// - Complexity: O(*n*) in the keys that have left; one file is read for each.
    func remove(now containers: FileContainers?, _ notice: (String) -> Void) -> [KeptFiles] {
        removeTemporaries(now: containers, notice)
        return files.flatMap { directory, files -> [KeptFiles] in
            guard isOwner else {
                notice(
                    "files in \(directory) were not removed, though their keys are stored elsewhere now: "
                        + "another store wrote them"
                )
                return []
            }
            let user = containers?.containers.first { $0.location == directory }
            let (rest, failure) = remove(files, in: directory, user, notice)
            if let failure {
                notice(
                    "files of keys that are stored elsewhere now were not removed from \(directory), and have older "
                        + "contents than those keys: \(failure)"
                )
            }
            return kept(rest, in: directory)
        }
    }

    /// Removes what a killed commit left beside its targets, in directories that no keys use any
    /// more.
    ///
    /// Such a file holds a value, and nobody would look for it there. If there are more names than
    /// a directory of keys may have (`limits.files`), the rest is not checked: others may have made
    /// them.
    private func removeTemporaries(now containers: FileContainers?, _ notice: (String) -> Void) {
        let used = Set(containers?.containers.map(\.location) ?? [])
        for directory in places.keys where isOwner && !used.contains(directory) {
            guard let tree = try? open(directory) else { continue }
            for path in temporaries(in: tree) {
                do throws(FileFailure) { try tree.remove(path) } catch {
                    notice(
                        "\(directory)/\(path), which holds a value of an unfinished commit, cannot "
                            + "be removed; remove it: \(error.sentence)"
                    )
                }
            }
        }
    }

    /// Opens a directory; nil if it is not the one that held the files.
    private func open(_ directory: String) throws -> FileTree? {
        let owners = [FormerFiles.text(keyspace.epoch)]
        // Others may write there, because only such files are removed.
        let tree = try FileTree(trusted: directory, isShared: true, owners: owners)
        return try tree.isOwn(DirectoryIdentity(tree.root), places[directory]) ? tree : nil
    }

    private func temporaries(in tree: FileTree) -> [FilePath] {
        var namesLeft = keyspace.withCore { $0.admission.limits.fileCount }
        var (rest, found): ([FilePath], [FilePath]) = ([.root], [])
        while namesLeft >= 0, let next = rest.popLast() {
            // What cannot be read was reported already, for the keys that were there.
            try? tree.forEachName(in: next) { (name, isDirectory) throws(FileFailure) in
                namesLeft -= 1
                guard namesLeft >= 0 else { throw FileFailure(tooManyNames: 0) }
                let path = next.appending(name)
                if isDirectory, FileName.isOfKey(name), path.mayHoldKeys {
                    rest.append(path)
                } else if !isDirectory, tree.isTemporary(name) {
                    found.append(path)
                }
            }
        }
        return found
    }

    /// - Returns: Those that are left, and why.
    private func remove(
        _ files: [FilePath: [File]],
        in directory: String,
        _ user: FileContainer?,
        _ notice: (String) -> Void
    ) -> (rest: [File], failure: String?) {
        let tree: FileTree
        do {
            guard let opened = try open(directory) else {
                return (
                    files.values.flatMap { $0 },
                    "this empty directory is not the one that had the files: is a mount missing? "
                        + "If they are gone for good, create \(directory)/.stated"
                )
            }
            tree = opened
        } catch {
            return (files.values.flatMap { $0 }, LeftFiles.sentence(error))
        }
        var (rest, failure): ([File], String?) = ([], nil)
        for (path, candidates) in files where !isInUse(path, by: user) {
            do { try remove(path, of: candidates, tree, user, notice) } catch {
                rest += candidates
                failure = failure ?? LeftFiles.sentence(error)
            }
        }
        return (rest, failure)
    }

    private static func sentence(_ error: any Error) -> String {
        (error as? FileFailure)?.sentence ?? (error as? StateError)?.message ?? "\(error)"
    }

    private func kept(_ files: [File], in directory: String) -> [KeptFiles] {
        Dictionary(grouping: files, by: \.prefixByteCount).compactMap { prefixByteCount, files in
            var kept = KeptFiles(directory: directory, prefixByteCount: prefixByteCount)
            for file in files {
                kept.digests.entries += possibleDigests(of: file).map { (file.key.bytes, $0) }
            }
            return kept.digests.entries.isEmpty ? nil : kept
        }
    }

    private func possibleDigests(of file: File) -> Set<ValueDigest> {
        var possible = Set(file.digests.compactMap { $0 })
        if let digest = pendingDigests[file.key.bytes] ?? nil { possible.insert(digest) }
        if file.isCurrent, let value = keyspace.entry(for: file.key)?.value {
            possible.insert(ValueDigest(value))
        }
        return possible
    }

    /// Whether the file belongs to another key now.
    private func isInUse(_ path: FilePath, by user: FileContainer?) -> Bool {
        user?.keys.key(of: path).map { keyspace.hasNewest($0) } ?? false
    }

    private func remove(
        _ path: FilePath,
        of candidates: [File],
        _ tree: FileTree,
        _ user: FileContainer?,
        _ notice: (String) -> Void
    ) throws {
        guard let status = try tree.status(path), !status.isDirectory else { return }
        let limits = candidates.map { file in
            max(
                keyspace.entry(for: file.key)?.value.count ?? 0,
                possibleDigests(of: file).map(\.byteCount).max() ?? 0
            )
        }
        let limit = limits.max() ?? 0
        // A file larger than the value is not what the key held.
        guard status.isRegular, status.stamp.byteCount <= Int64(limit),
            case .value(let bytes, let read)? = try tree.contents(of: path, limit: limit),
            candidates.contains(where: { isOf($0, bytes) })
        else {
            let keys = candidates.map { "'\($0.key)'" }.joined(separator: " or ")
            return notice(
                "\(tree.location)/\(path) stays: it does not hold the value of key \(keys), "
                    + "which lives elsewhere now"
            )
        }
        // Order matters: the removal must not count as an edit for the current user of the
        // directory.
        user?.files?.known[path] = nil
        var publisher = FilePublisher(tree)
        try publisher.take([FileStep(target: path, before: read.stamp)])
    }
}
