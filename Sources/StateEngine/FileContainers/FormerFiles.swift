/// Where keys lived when the store was last open: what the store notes of the rules of then.
///
/// The epoch of the store, so that a copy of it, which is another, does not take these files for its own; then a line for each rule that
/// said where keys live: its pattern, a tab, and the directory, or nothing where it was no file.
///
/// ```
/// epoch 5c1e0f4b90a2d377
/// app/    /etc/app
/// app/cache/
/// ```
struct FormerFiles {
    /// The epoch of the store that wrote it; nil where there was none.
    let epoch: String?
    private let rules: [FileRule]
    private let table: FileRuleTable

    /// Reads the note, which is nothing where there is none; a pattern that is none any more meant no key.
    init(_ note: String?) {
        let rules = (note ?? "").split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let keys = try? Pattern(String(parts[0])) else {
                return FileRule?.none
            }
            return FileRule(keys: keys, directory: parts[1].isEmpty ? nil : String(parts[1]))
        }
        self.rules = rules
        epoch = (note ?? "").split(separator: "\n").first { $0.hasPrefix("epoch ") }
            .map { String($0.dropFirst(6)) }
        table = FileRuleTable(rules.indices.map { (rules[$0].keys, $0) })
    }

    /// What the store of an epoch notes of rules.
    static func note(_ rules: [FileRule], _ epoch: Epoch) -> String {
        let lines = rules.map { "\($0.keys)\t\($0.directory ?? "")" }
        return (["epoch \(text(epoch))"] + lines).joined(separator: "\n")
    }

    static func text(_ epoch: Epoch) -> String { String(epoch.bits, radix: 16) }

    var directories: Set<String> { Set(rules.compactMap(\.directory)) }

    /// The rule that said where a key lived; nil where none did, or it was in no file.
    func rule(of key: Bytes) -> FileRule? {
        guard let rule = table.container(of: key).map({ rules[$0] }), rule.directory != nil else {
            return nil
        }
        return rule
    }
}

/// Files of keys that have left their directories, as the last process left them.
struct LeftFiles {
    /// The keys by the paths of their files, by directory.
    private(set) var keys: [String: [FilePath: Key]] = [:]
    /// What the files of an unfinished commit may hold in place of what their keys do.
    private let marks: [[UInt8]: ValueMark?]
    private let keyspace: LocalKeyspace
    /// Whether it was this store that wrote them, and not one that this is a copy of.
    private let isOwner: Bool

    /// Finds them, by where keys lived, where they live now, and the mark of what a commit had not reached.
    ///
    /// - Complexity: O(*n*) in the keys, where any lived in files.
    init(
        _ former: FormerFiles,
        now containers: FileContainers?,
        in keyspace: LocalKeyspace,
        _ mark: FileMark?
    ) {
        self.keyspace = keyspace
        isOwner = former.epoch == FormerFiles.text(keyspace.epoch)
        let entries = (mark?.entries ?? []).map { ($0.key, $0.old) }
        marks = Dictionary(entries) { first, _ in first }
        guard !former.directories.isEmpty else { return }
        var keys: [String: [FilePath: Key]] = [:]
        keyspace.withCore { core in
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                guard let rule = former.rule(of: record.key), let directory = rule.directory,
                    !(containers?.container(of: record.key)?.isPlace(of: rule) ?? false),
                    let path = try? FileName.path(of: record.key, from: rule.prefixByteCount)
                else { return true }
                keys[directory, default: [:]][path] = Key(verified: record.key)
                return true
            }
        }
        self.keys = keys
    }

    /// Whether a file is that of a key that has left, and nobody has made anything else of it.
    func has(_ value: [UInt8]?, at path: FilePath, in directory: String) -> Bool {
        guard let value, let key = keys[directory]?[path] else { return false }
        return isOf(key, value)
    }

    private func isOf(_ key: Key, _ value: [UInt8]) -> Bool {
        if keyspace.entry(for: key)?.value == value { return true }
        guard let old = marks[key.bytes] else { return false }
        return old == ValueMark(value)
    }

    /// Removes them.
    ///
    /// Any that somebody has made something else of is left, and named: that is nowhere else.
    ///
    /// - Complexity: O(*n*) in the keys that have left; one file is read for each.
    func remove(now containers: FileContainers?, _ notice: (String) -> Void) {
        for (directory, keys) in keys {
            guard isOwner else {
                notice(
                    "the files in \(directory) of keys that live elsewhere now stay: the store is another than the one that wrote them"
                )
                continue
            }
            let user = containers?.containers.first { $0.location == directory }
            do {
                let tree = try FileTree(directory)
                for (path, key) in keys where !isInUse(path, by: user) {
                    try remove(path, of: key, tree, user, notice)
                }
            } catch {
                let reason = (error as? FileFailure)?.sentence ?? "\(error)"
                notice("files of keys that live elsewhere now stay in \(directory): \(reason)")
            }
        }
    }

    /// Whether the file is another key's now.
    private func isInUse(_ path: FilePath, by user: FileContainer?) -> Bool {
        guard let key = user?.key(of: path) else { return false }
        return keyspace.newest(of: key) != nil
    }

    private func remove(
        _ path: FilePath,
        of key: Key,
        _ tree: FileTree,
        _ user: FileContainer?,
        _ notice: (String) -> Void
    ) throws {
        guard let status = (try? tree.status(path)) ?? nil, !status.isDirectory else { return }
        let limit = max(
            keyspace.entry(for: key)?.value.count ?? 0,
            (marks[key.bytes] ?? nil)?.byteCount ?? 0
        )
        // What cannot be read, or is larger than the value, is not what the key holds, and no reason to leave the others.
        guard
            case .value(let bytes, let read)? = try? tree.contents(of: path, limit: limit),
            isOf(key, bytes)
        else {
            return notice(
                "\(tree.location)/\(path) is left, for it is not what key '\(key)' holds, which lives elsewhere now"
            )
        }
        // Order matters: it is no edit of who has the directory now.
        user?.files?.known[path] = nil
        var publisher = FilePublisher(tree) { tree.temporaryName(0) }
        try publisher.take([FileStep(target: path, before: read.stamp)])
    }
}

extension FileRule {
    /// Bytes of a key before the part that is its file's path.
    var prefixByteCount: Int {
        guard keys.kind == .key else { return keys.literal.count }
        return keys.literal.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    }
}
