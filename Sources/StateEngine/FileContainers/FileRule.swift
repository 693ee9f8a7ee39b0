import StatePlatform

/// Where the configuration puts the keys of a pattern, as far as files are concerned.
package struct FileRule: Hashable, Sendable {
    /// The keys; a glob never lives in files.
    package var keys: Pattern
    /// The directory of their files; nil if they live elsewhere, even if a wider rule names a
    /// directory.
    package var directory: String?
    /// Whether others than root and this process's user may write to the directory.
    package var isShared: Bool
    package var form: FileForm

    package init(
        keys: Pattern,
        directory: String?,
        isShared: Bool = false,
        form: FileForm = FileForm()
    ) {
        self.keys = keys
        self.directory = directory
        self.isShared = isShared
        self.form = form
    }
}

/// Who may read the keys of files, if that is restricted.
///
/// Whoever has made a file before is not for that reason allowed to read the value that replaces it.
package struct FileReaders: Hashable, Sendable {
    package var users: Set<UInt32>
    package var groups: Set<UInt32>

    package init(users: Set<UInt32>, groups: Set<UInt32>) {
        (self.users, self.groups) = (users, groups)
    }

    /// Root and this process's user may read all keys.
    func include(user: UInt32) -> Bool {
        user == 0 || user == geteuid() || users.contains(user)
    }

    func include(group: UInt32) -> Bool { groups.contains(group) }
}

/// What the files of a rule look like.
package struct FileForm: Hashable, Sendable {
    /// Their permission bits; nil for those of the file that is replaced, or of the directory.
    package var mode: UInt32?
    /// Nil for the owner of the file that is replaced, or of this process.
    package var uid: UInt32?
    package var gid: UInt32?
    /// Whether a final line break in a file is not part of the value.
    package var trims = false
    /// Who may read the keys; nil for everybody.
    package var readers: FileReaders?

    package init() {}

    /// ``mode`` as the system has it.
    var permissions: mode_t? { mode.map { mode_t(truncatingIfNeeded: $0) } }

    /// The owner of a file that replaces one of `old`, or of a new one; nil for that of this process.
    func owner(replacing old: FileStatus?) -> UInt32? {
        if let uid { return uid }
        guard let found = old?.uid, readers?.include(user: found) ?? true else { return nil }
        return found
    }

    /// The group of a file that replaces one of `old`, or of a new one; `made` is the group that the
    /// directory has given to it.
    func group(replacing old: FileStatus?, made: UInt32) -> UInt32 {
        if let gid { return gid }
        let found = old?.gid ?? made
        return readers?.include(group: found) ?? true ? found : getegid()
    }

    /// Owner, group and permission bits of a new directory, which has those of `made`.
    ///
    /// Whoever may read the files may go through it. A private directory stays root's or this
    /// process's, writable for nobody else; if the files belong to somebody else, all may go through
    /// it, so that the owner can.
    func directory(
        in isPrivate: Bool,
        like made: FileStatus
    ) -> (uid: UInt32, gid: UInt32, mode: mode_t) {
        let owner = uid ?? made.uid
        let mayOwn = !isPrivate || owner == 0 || owner == made.uid
        let bits = permissions.map { 0o700 | $0 & 0o777 | ($0 & 0o444) >> 2 } ?? made.mode & 0o777
        let allowed = isPrivate ? bits & ~0o022 : bits
        // A sticky directory protects the files of each user from the others.
        let sticky = made.mode & S_ISVTX
        return (
            mayOwn ? owner : made.uid, gid ?? made.gid, allowed | sticky | (mayOwn ? 0 : 0o001)
        )
    }

    /// The most bytes that a file has beside those of its value.
    var extraByteCount: Int { trims ? 2 : 0 }

    /// The value in a file with these contents.
    func value(_ contents: [UInt8]) -> [UInt8] {
        guard trims else { return contents }
        return contents.withUnsafeBytes { FileForm.withoutFinalBreak($0).map { Array($0) } }
            ?? contents
    }

    /// The bytes before a final line break; nil if there is none.
    static func withoutFinalBreak(_ bytes: Bytes) -> Bytes? {
        guard bytes.last == 0x0A else { return nil }
        let isPair = bytes.count > 1 && bytes[bytes.count - 2] == 0x0D
        return bytes.slice(0, bytes.count - (isPair ? 2 : 1))
    }

    /// The contents of a file that ``value(_:)`` reads as `value`.
    func contents(of value: Bytes) -> [UInt8]? {
        trims && value.last == 0x0A ? Array(value) + [0x0A] : nil
    }
}

/// Finds the most specific rule of a key.
struct FileRuleTable: Sendable {
    private let rules: [Pattern]
    private let index: PatternIndex

    init(_ rules: [FileRule]) {
        self.rules = rules.map(\.keys)
        index = PatternIndex(self.rules)
    }

    /// The index of the most specific rule; nil if no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, plus the rules whose literal it begins with.
    func rule(of key: Bytes) -> Int? {
        var best: Int?
        index.forEachMatch(key) { rule in
            if best.map({ rules[rule].isMoreSpecific(than: rules[$0]) }) ?? true { best = rule }
        }
        return best
    }
}
