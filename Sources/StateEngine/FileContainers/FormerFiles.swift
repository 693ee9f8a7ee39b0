/// Where keys lived when the store was last open: what the store notes of the rules of then.
///
/// A line for each rule that said where keys live: its pattern, a tab, and the directory, or nothing where it was no file.
struct FormerFiles {
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
        table = FileRuleTable(rules.indices.map { (rules[$0].keys, $0) })
    }

    /// What the store notes of rules.
    static func note(_ rules: [FileRule]) -> String {
        rules.map { "\($0.keys)\t\($0.directory ?? "")" }.joined(separator: "\n")
    }

    var directories: Set<String> { Set(rules.compactMap(\.directory)) }

    /// The rule that said where a key lived; nil where none did, or it was in no file.
    func rule(of key: Bytes) -> FileRule? {
        guard let rule = table.container(of: key).map({ rules[$0] }), rule.directory != nil else {
            return nil
        }
        return rule
    }

    /// The directory that a key had its file in.
    func directory(of key: Bytes) -> String? { rule(of: key)?.directory }
}

/// Files of keys that live elsewhere now.
extension FileContainers {
    /// Removes the files of keys that have left their directories, where they hold what the keys do.
    ///
    /// Any other is left, and named: what somebody made of it is nowhere else.
    ///
    /// - Complexity: O(*n*) in the keys; one file is read for each that has left.
    static func removeLeft(
        _ former: FormerFiles,
        now containers: FileContainers?,
        in keyspace: LocalKeyspace,
        _ notice: (String) -> Void
    ) {
        guard !former.directories.isEmpty else { return }
        var left: [String: [(path: FilePath, key: Key)]] = [:]
        keyspace.withCore { core in
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                guard let rule = former.rule(of: record.key), let directory = rule.directory,
                    containers?.container(of: record.key)?.location != directory,
                    let path = try? FileName.path(of: record.key, from: rule.prefixByteCount)
                else { return true }
                left[directory, default: []].append((path, Key(verified: record.key)))
                return true
            }
        }
        for (directory, files) in left {
            do {
                let tree = try FileTree(directory)
                let user = containers?.containers.first { $0.location == directory }
                for (path, key) in files where user?.key(of: path) == nil {
                    try removeLeft(path, of: key, tree, keyspace, notice)
                }
            } catch {
                let reason = (error as? FileFailure)?.sentence ?? "\(error)"
                notice("files of keys that live elsewhere now stay in \(directory): \(reason)")
            }
        }
    }

    private static func removeLeft(
        _ path: FilePath,
        of key: Key,
        _ tree: FileTree,
        _ keyspace: LocalKeyspace,
        _ notice: (String) -> Void
    ) throws {
        let value = keyspace.entry(for: key)?.value
        // What cannot be read, or is larger than the value, is not what the key holds, and no reason to leave the others.
        guard
            case .value(let bytes, let status)? = try? tree.contents(
                of: path,
                limit: value?.count ?? 0
            ),
            bytes == value
        else {
            if (try? tree.status(path)) != nil {
                notice(
                    "\(tree.location)/\(path) is left, for it is not what key '\(key)' holds, which lives elsewhere now"
                )
            }
            return
        }
        var publisher = FilePublisher(tree) { tree.temporaryName(0) }
        try publisher.take([FileStep(target: path, before: status.stamp)])
    }
}

extension FileRule {
    /// Bytes of a key before the part that is its file's path.
    var prefixByteCount: Int {
        guard keys.kind == .key else { return keys.literal.count }
        return keys.literal.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    }
}
