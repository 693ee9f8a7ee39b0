/// Files of keys that have left their directories, as the last process left them.
struct LeftFiles {
    struct File {
        let key: Key
        let prefixByteCount: Int
        /// What it may hold, where that was noted when it could not be removed.
        var marks: [ValueDigest?] = []
        /// Whether it may hold what its key does.
        var isCurrent = false
    }

    /// The files by their paths, by directory: rules of different times may have had different keys there.
    private(set) var files: [String: [FilePath: [File]]] = [:]
    /// What the files of an unfinished commit may hold in place of what their keys do.
    private let marks: [[UInt8]: ValueDigest?]
    private let keyspace: LocalKeyspace
    /// Which directories they are in, by their paths.
    private let places: [String: DirectoryIdentity]
    /// Whether it was this store that wrote them, and not one that this is a copy of.
    private let isOwner: Bool

    /// Finds them, by where keys lived, where they live now, and the mark of what a commit had not reached.
    ///
    /// - Complexity: O(*n*) in the keys of the rules by which any lived in files.
    init(
        _ former: FormerFiles,
        now containers: FileContainers?,
        in keyspace: LocalKeyspace,
        _ mark: PendingFileList?
    ) {
        self.keyspace = keyspace
        places = former.places
        isOwner = former.epoch == FormerFiles.text(keyspace.epoch)
        let entries = (mark?.entries ?? []).map { ($0.key, $0.old) }
        marks = Dictionary(entries) { first, _ in first }
        for kept in former.kept {
            for (key, mark) in kept.marks.entries {
                guard let key = try? Key(bytes: key) else { continue }
                add(key, kept.directory, kept.prefixByteCount) { $0.marks.append(mark) }
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
        // One that is deleted may have its file still.
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

    /// Whether a file is that of a key that has left, and nobody has made anything else of it.
    func has(_ value: [UInt8]?, at path: FilePath, in directory: String) -> Bool {
        guard let value, let candidates = files[directory]?[path] else { return false }
        return candidates.contains { isOf($0, value) }
    }

    private func isOf(_ file: File, _ value: [UInt8]) -> Bool {
        if keyspace.entry(for: file.key)?.value == value { return true }
        let mark = ValueDigest(value)
        return file.marks.contains(mark) || (marks[file.key.bytes] ?? nil) == mark
    }

    // MARK: Removing them

    /// Removes them.
    ///
    /// Any that somebody has made something else of is left, and named: that is nowhere else.
    ///
    /// - Returns: Those that could not be looked at or removed, which may be back some day, and are older than what their keys become.
    /// - Complexity: O(*n*) in the keys that have left; one file is read for each.
    func remove(now containers: FileContainers?, _ notice: (String) -> Void) -> [KeptFiles] {
        removeTemporaries(now: containers, notice)
        return files.flatMap { directory, files -> [KeptFiles] in
            guard isOwner else {
                notice(
                    "the files in \(directory) of keys that live elsewhere now stay: the store is another than the one that wrote them"
                )
                return []
            }
            let user = containers?.containers.first { $0.location == directory }
            let (rest, failure) = remove(files, in: directory, user, notice)
            if let failure {
                notice(
                    "files of keys that live elsewhere now stay in \(directory), and are older than those keys: \(failure)"
                )
            }
            return kept(rest, in: directory)
        }
    }

    /// Removes what a commit that was killed left beside its targets, in directories that no keys have any more.
    ///
    /// It holds values, and nobody would look for it there again. Of more names than a directory of keys may have (`limits.files`) the
    /// rest is not looked at: others may have made them.
    private func removeTemporaries(now containers: FileContainers?, _ notice: (String) -> Void) {
        let used = Set(containers?.containers.map(\.location) ?? [])
        for directory in places.keys where isOwner && !used.contains(directory) {
            guard let tree = try? open(directory) else { continue }
            for path in temporaries(in: tree) {
                do throws(FileFailure) { try tree.remove(path) } catch {
                    notice(
                        "\(directory)/\(path), which holds a value of a commit that was not finished, stays; remove it: "
                            + error.sentence
                    )
                }
            }
        }
    }

    /// Opens a directory; nil if it is not the one that held the files.
    private func open(_ directory: String) throws -> FileTree? {
        let marks = [FormerFiles.text(keyspace.epoch)]
        // Others may write there, because only such files are removed.
        let tree = try FileTree(trusted: directory, isShared: true, marks: marks)
        return try tree.isOwn(DirectoryIdentity(tree.root), places[directory]) ? tree : nil
    }

    private func temporaries(in tree: FileTree) -> [FilePath] {
        var namesLeft = keyspace.withCore { $0.admission.limits.fileCount }
        var (rest, found): ([FilePath], [FilePath]) = ([.root], [])
        while namesLeft >= 0, let next = rest.popLast() {
            // What cannot be read has been said of the keys that were there.
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
                    "it is empty, and not the one that held them; is it not mounted?"
                        + " If they are gone for good, make \(directory)/.stated"
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
                kept.marks.entries += possibleDigests(of: file).map { (file.key.bytes, $0) }
            }
            return kept.marks.entries.isEmpty ? nil : kept
        }
    }

    private func possibleDigests(of file: File) -> Set<ValueDigest> {
        var possible = Set(file.marks.compactMap { $0 })
        if let mark = marks[file.key.bytes] ?? nil { possible.insert(mark) }
        if file.isCurrent, let value = keyspace.entry(for: file.key)?.value {
            possible.insert(ValueDigest(value))
        }
        return possible
    }

    /// Whether the file is another key's now.
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
        // One that is larger than the value is not what the key held.
        guard status.isRegular, status.stamp.byteCount <= Int64(limit),
            case .value(let bytes, let read)? = try tree.contents(of: path, limit: limit),
            candidates.contains(where: { isOf($0, bytes) })
        else {
            let keys = candidates.map { "'\($0.key)'" }.joined(separator: " or ")
            return notice(
                "\(tree.location)/\(path) is left, for it is not what key \(keys) holds, which lives elsewhere now"
            )
        }
        // Order matters: it is no edit of who has the directory now.
        user?.files?.known[path] = nil
        var publisher = FilePublisher(tree)
        try publisher.take([FileStep(target: path, before: read.stamp)])
    }
}
