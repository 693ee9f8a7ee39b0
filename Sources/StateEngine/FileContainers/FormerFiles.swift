/// Where keys lived when the store was last open: what the store notes of the rules of then.
///
/// The epoch of the store, so that a copy of it, which is another, does not take these files for its own; then a line for each rule that
/// said where keys live: its pattern, a tab, and the directory, or nothing where it was no file. Below each word `left` are those of
/// before, while not all files that they left are removed, or those whose directories are about to be filled: a start under other rules
/// takes what it finds there for files that keys have left. Below the word `places` are the directories themselves, as
/// ``DirectoryIdentity`` says it, a tab, and the path: another one that is empty has lost no files. Below the word `files` are files that could not be removed: the bytes of a
/// key before the part that is its file's path, a tab, and the directory; then for each file what it may hold, as ``PendingFileList`` says it,
/// for the key goes on without it.
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
    /// The epoch of the store that wrote it; nil where there was none.
    private(set) var epoch: String?
    private let current: Rules
    /// Those of before, where their files may still be there, the last first.
    private var left: [Rules] = []
    private(set) var kept: [KeptFiles] = []
    /// Which directories they were, by their paths.
    private(set) var places: [String: DirectoryIdentity] = [:]

    private struct Rules {
        let rules: [FileRule]
        let table: FileRuleTable

        init(_ rules: [FileRule]) {
            self.rules = rules
            table = FileRuleTable(rules)
        }

        /// Reads lines; a pattern that is none any more meant no key.
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

    /// What the store of an epoch notes of rules, and of directories, of which it takes those that it needs.
    init(_ rules: [FileRule], _ epoch: Epoch, at places: [String: DirectoryIdentity]) {
        self.epoch = FormerFiles.text(epoch)
        current = Rules(rules)
        self.places = places
    }

    /// Reads the note, which is nothing where there is none.
    init(_ record: String?) {
        var lines = (record ?? "").split(separator: "\n")[...]
        let mark = "epoch "
        epoch = lines.first.flatMap { $0.hasPrefix(mark) ? String($0.dropFirst(mark.count)) : nil }
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

    /// The note, as ``init(_:)-(String?)`` reads it.
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

    /// The same, while the directories of other rules are being filled; of the store of `epoch` where it was of none.
    func filling(_ next: FormerFiles, _ rules: [FileRule], _ epoch: Epoch) -> FormerFiles {
        var record = standing(at: next.places)
        record.epoch = self.epoch ?? FormerFiles.text(epoch)
        record.leave([Rules(rules)] + left)
        return record
    }

    /// The same, while what others have left is being removed.
    func leaving(_ former: FormerFiles) -> FormerFiles {
        var record = self
        record.leave([former.current] + former.left)
        return record.keeping(former.kept)
    }

    /// The same, with other directories at the places.
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

    /// A start that crashes again and again notes its rules once.
    private mutating func leave(_ rules: [Rules]) {
        left = []
        for rules in rules
        where rules.hasFiles && !left.contains(where: { $0.rules == rules.rules }) {
            left.append(rules)
        }
    }

    static func text(_ epoch: Epoch) -> String { String(epoch.bits, radix: 16) }

    /// The keys of which any may have had a file, by rules.
    var keys: PatternSet {
        PatternSet(([current] + left).flatMap(\.rules).filter { $0.directory != nil }.map(\.keys))
    }

    /// The rule that said where a key lived; nil where none did, or it was in no file.
    func rule(of key: Bytes) -> FileRule? { current.rule(of: key) }

    /// The rules of which a key may have left a file.
    func rules(of key: Bytes) -> [FileRule] { ([current] + left).compactMap { $0.rule(of: key) } }
}

/// Files of one directory that their keys have left, and that could not be removed.
struct KeptFiles {
    let directory: String
    /// Bytes of a key before the part that is its file's path.
    let prefixByteCount: Int
    /// What each may hold; more than one entry of a key where that is not known.
    var marks = PendingFileList()

    /// Reads what ``lines`` are, in parts; what is none of it is left out.
    static func read(_ lines: some Sequence<[Substring]>) -> [KeptFiles] {
        var kept: [KeptFiles] = []
        for parts in lines {
            if parts.count == 2 {
                guard let count = Int(parts[0]) else { continue }
                kept.append(KeptFiles(directory: String(parts[1]), prefixByteCount: count))
            } else if !kept.isEmpty, let mark = PendingFileList(String(parts[0])) {
                kept[kept.count - 1].marks.entries += mark.entries
            }
        }
        return kept
    }

    var lines: [String] {
        ["\(prefixByteCount)\t\(directory)"] + marks.text.split(separator: "\n").map(String.init)
    }
}

extension FileRule {
    /// Bytes of a key before the part that is its file's path.
    var prefixByteCount: Int {
        guard keys.kind == .key else { return keys.literal.count }
        return keys.literal.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    }
}
