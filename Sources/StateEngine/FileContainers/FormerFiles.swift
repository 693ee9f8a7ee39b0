/// Where keys lived when the store was last open: what the store notes of the rules of then.
///
/// The epoch of the store, so that a copy of it, which is another, does not take these files for its own; then a line for each rule that
/// said where keys live: its pattern, a tab, and the directory, or nothing where it was no file. Below the word `left` are those of before,
/// while not all files that they left are removed.
///
/// ```
/// epoch 5c1e0f4b90a2d377
/// app/    /etc/app
/// app/cache/
/// left
/// app/    /etc/former
/// ```
struct FormerFiles {
    /// The epoch of the store that wrote it; nil where there was none.
    let epoch: String?
    private let current: Rules
    /// Those of before, where their files may still be there.
    private let left: Rules?

    private struct Rules {
        let rules: [FileRule]
        let table: FileRuleTable

        /// Reads lines; a pattern that is none any more meant no key.
        init(_ lines: some Sequence<Substring>) {
            let rules = lines.compactMap { line in
                let parts = line.split(
                    separator: "\t",
                    maxSplits: 1,
                    omittingEmptySubsequences: false
                )
                guard parts.count == 2, let keys = try? Pattern(String(parts[0])) else {
                    return FileRule?.none
                }
                return FileRule(keys: keys, directory: parts[1].isEmpty ? nil : String(parts[1]))
            }
            self.rules = rules
            table = FileRuleTable(rules.indices.map { (rules[$0].keys, $0) })
        }

        func rule(of key: Bytes) -> FileRule? {
            table.container(of: key).map { rules[$0] }.flatMap { $0.directory == nil ? nil : $0 }
        }
    }

    /// Reads the note, which is nothing where there is none.
    init(_ note: String?) {
        let lines = (note ?? "").split(separator: "\n")
        epoch = lines.first { $0.hasPrefix("epoch ") }.map { String($0.dropFirst(6)) }
        let end = lines.firstIndex(of: FormerFiles.leftMark)
        current = Rules(lines[..<(end ?? lines.endIndex)])
        left = end.map { Rules(lines[$0...]) }
    }

    private static let leftMark: Substring = "left"

    /// The same note, with the rules of a former one whose files are to be removed.
    static func note(_ now: String, leaving former: String?) -> String {
        let lines = (former ?? "").split(separator: "\n").filter {
            $0 != leftMark && !$0.hasPrefix("epoch ")
        }
        return lines.isEmpty ? now : ([Substring(now), leftMark] + lines).joined(separator: "\n")
    }

    /// What the store of an epoch notes of rules.
    static func note(_ rules: [FileRule], _ epoch: Epoch) -> String {
        let lines = rules.map { "\($0.keys)\t\($0.directory ?? "")" }
        return (["epoch \(text(epoch))"] + lines).joined(separator: "\n")
    }

    static func text(_ epoch: Epoch) -> String { String(epoch.bits, radix: 16) }

    /// Whether any key had a file.
    var isEmpty: Bool { (current.rules + (left?.rules ?? [])).allSatisfy { $0.directory == nil } }

    /// The rule that said where a key lived; nil where none did, or it was in no file.
    func rule(of key: Bytes) -> FileRule? { current.rule(of: key) }

    /// The rules of which a key may have left a file.
    func rules(of key: Bytes) -> [FileRule] {
        [current.rule(of: key), left?.rule(of: key)].compactMap { $0 }
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
        guard !former.isEmpty else { return }
        var keys: [String: [FilePath: Key]] = [:]
        let add = { (key: Bytes) in
            for rule in former.rules(of: key) {
                guard let directory = rule.directory,
                    !(containers?.container(of: key)?.isPlace(of: rule) ?? false),
                    let path = try? FileName.path(of: key, from: rule.prefixByteCount)
                else { continue }
                keys[directory, default: [:]][path] = Key(verified: key)
            }
        }
        keyspace.withCore { core in
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                add(record.key)
                return true
            }
        }
        // One that is deleted may have its file still.
        for (key, _) in entries { key.withUnsafeBytes(add) }
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
