/// Where keys lived when the store was last open: a record in the store of the rules at that time.
///
/// First the epoch of the store, so that a copy of it, which has another, does not treat these
/// files as its own. Then a line for each rule that said where keys live: its pattern, a tab, and
/// the directory, or nothing if it had none. Below each line `left` are earlier rules, while not
/// all files that they left are removed, or rules whose directories are about to be filled: a start
/// under other rules treats what it finds there as files that keys have left. Below the line
/// `places` are the directories themselves, as text of ``DirectoryIdentity``, a tab, and the path:
/// a different directory that is empty has lost no files. Below the line `files` are files that
/// could not be removed: the number of bytes of a key before the part that is its file's path, a
/// tab, and the directory; then what each file may hold, as text of ``PendingFileList``, because
/// the key continues without it.
///
/// ```
/// epoch 5c1e0f4b90a2d377
/// app/    /etc/app
/// app/cache/
/// left
/// app/    /etc/former
/// places
/// 2050:131074:1732270000000000000    /etc/app
/// files
/// 4    /mnt/away
/// 6170702f78 3:9c1f0a…
/// ```
struct FormerFiles {
    /// The epoch of the store that wrote it; nil if there was no record.
    private(set) var epoch: String?
    private let current: Rules
    /// Earlier rules whose files may still be there, the last first.
    private var left: [Rules] = []
    private(set) var kept: [KeptFiles] = []
    /// The identities of the directories, by their paths.
    private(set) var places: [String: DirectoryIdentity] = [:]

    private struct Rules {
        let rules: [FileRule]
        let table: FileRuleTable

        init(_ rules: [FileRule]) {
            self.rules = rules
            table = FileRuleTable(rules)
        }

        /// Reads lines; a pattern that is no longer valid matched no key.
        init(_ lines: some Sequence<Substring>) {
            let rules = lines.compactMap { line in
                let parts = FormerFiles.parts(line)
                guard parts.count == 2, let keys = try? Pattern(String(parts[0])) else {
                    return FileRule?.none
                }
                return FileRule(keys: keys, directory: parts[1].isEmpty ? nil : String(parts[1]))
            }
            self.init(rules)
        }

        var lines: [String] { rules.map { "\($0.keys)\t\($0.directory ?? "")" } }

        var hasFiles: Bool { rules.contains { $0.directory != nil } }

        func rule(of key: Bytes) -> FileRule? {
            table.rule(of: key).map { rules[$0] }.flatMap { $0.directory == nil ? nil : $0 }
        }
    }

    private static let leftWord: Substring = "left"
    private static let filesWord: Substring = "files"
    private static let placesWord: Substring = "places"

    private static func parts(_ line: Substring) -> [Substring] {
        line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false)
    }

    /// The record of the store with an epoch, for rules, and for those of the directories that they
    /// need.
    init(_ rules: [FileRule], _ epoch: Epoch, at places: [String: DirectoryIdentity]) {
        self.epoch = FormerFiles.text(epoch)
        current = Rules(rules)
        self.places = places
    }

    /// Reads a record; nil reads as an empty record.
    init(_ record: String?) {
        var lines = (record ?? "").split(separator: "\n")[...]
        let prefix = "epoch "
        epoch = lines.first.flatMap {
            $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : nil
        }
        if epoch != nil { lines = lines.dropFirst() }
        if let start = lines.firstIndex(of: FormerFiles.filesWord) {
            kept = KeptFiles.read(lines[(start + 1)...].lazy.map(FormerFiles.parts))
            lines = lines[..<start]
        }
        if let start = lines.firstIndex(of: FormerFiles.placesWord) {
            for parts in lines[(start + 1)...].lazy.map(FormerFiles.parts) where parts.count == 2 {
                places[String(parts[1])] = DirectoryIdentity(parts[0])
            }
            lines = lines[..<start]
        }
        let parts = lines.split(
            separator: FormerFiles.leftWord,
            omittingEmptySubsequences: false
        )
        current = Rules(parts.first ?? [])
        left = parts.dropFirst().map { Rules($0) }
    }

    /// The record, as ``init(_:)-(String?)`` reads it.
    var text: String {
        var lines = epoch.map { ["epoch \($0)"] } ?? []
        lines += current.lines
        for left in left { lines += [String(FormerFiles.leftWord)] + left.lines }
        let places = usedPlaces
        if !places.isEmpty { lines += [String(FormerFiles.placesWord)] + places }
        if !kept.isEmpty { lines += [String(FormerFiles.filesWord)] + kept.flatMap(\.lines) }
        return lines.joined(separator: "\n")
    }

    /// The directories of its rules and files, a line each.
    private var usedPlaces: [String] {
        let rules = ([current] + left).flatMap(\.rules)
        let used = Set(rules.compactMap(\.directory) + kept.map(\.directory))
        return used.sorted().compactMap { path in places[path].map { "\($0)\t\(path)" } }
    }

    /// The same, while the directories of other rules are being filled; of the store with `epoch`
    /// if it was of none.
    func filling(_ next: FormerFiles, _ rules: [FileRule], _ epoch: Epoch) -> FormerFiles {
        var record = standing(at: next.places)
        record.epoch = self.epoch ?? FormerFiles.text(epoch)
        record.leave([Rules(rules)] + left)
        return record
    }

    /// The same, while the files that other rules have left are being removed.
    func leaving(_ former: FormerFiles) -> FormerFiles {
        var record = self
        record.leave([former.current] + former.left)
        return record.keeping(former.kept)
    }

    /// The same, with other directories at the paths.
    func standing(at places: [String: DirectoryIdentity]) -> FormerFiles {
        var record = self
        record.places.merge(places) { $1 }
        return record
    }

    /// The same, with files that could not be removed.
    func keeping(_ kept: [KeptFiles]) -> FormerFiles {
        var record = self
        record.kept = kept
        return record
    }

    /// Repeated crashes at the start record the rules only once.
    private mutating func leave(_ rules: [Rules]) {
        left = []
        for rules in rules
        where rules.hasFiles && !left.contains(where: { $0.rules == rules.rules }) {
            left.append(rules)
        }
    }

    static func text(_ epoch: Epoch) -> String { String(epoch.bits, radix: 16) }

    /// The keys that may have had a file, by rules.
    var keys: PatternSet {
        PatternSet(([current] + left).flatMap(\.rules).filter { $0.directory != nil }.map(\.keys))
    }

    /// The rule that said where a key lived; nil if there was none, or it did not live in a file.
    func rule(of key: Bytes) -> FileRule? { current.rule(of: key) }

    /// The rules under which a key may have left a file.
    func rules(of key: Bytes) -> [FileRule] { ([current] + left).compactMap { $0.rule(of: key) } }
}

/// Files of one directory that their keys have left, and that could not be removed.
struct KeptFiles {
    let directory: String
    /// Bytes of a key before the part that is its file's path.
    let prefixByteCount: Int
    /// The possible contents of each; several entries of a key if it is not known which.
    var digests = PendingFileList()

    /// Reads ``lines``, split into parts; malformed lines are left out.
    static func read(_ lines: some Sequence<[Substring]>) -> [KeptFiles] {
        var kept: [KeptFiles] = []
        for parts in lines {
            if parts.count == 2 {
                guard let count = Int(parts[0]) else { continue }
                kept.append(KeptFiles(directory: String(parts[1]), prefixByteCount: count))
            } else if !kept.isEmpty, let list = PendingFileList(String(parts[0])) {
                kept[kept.count - 1].digests.entries += list.entries
            }
        }
        return kept
    }

    var lines: [String] {
        ["\(prefixByteCount)\t\(directory)"] + digests.text.split(separator: "\n").map(String.init)
    }
}

extension FileRule {
    /// Bytes of a key before the part that is its file's path.
    var prefixByteCount: Int {
        guard keys.kind == .key else { return keys.literal.count }
        return keys.literal.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    }
}
