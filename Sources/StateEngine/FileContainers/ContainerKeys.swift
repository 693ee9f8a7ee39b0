/// The keys of one rule that live in files, and the path of each key's file.
///
/// A file and its key determine each other: `key(of: path(of: key))` is `key`.
struct ContainerKeys: Sendable {
    /// The bytes of each key before the part that is its file's path.
    let prefix: [UInt8]
    /// The key of a rule that names a single key.
    let only: [UInt8]?
    /// Returns true for a key for which this is the most specific rule.
    let holds: @Sendable (Bytes) -> Bool

    init(_ rule: FileRule, holds: @escaping @Sendable (Bytes) -> Bool) {
        let literal = rule.keys.literal
        prefix = Array(literal[..<rule.prefixByteCount])
        only = rule.keys.kind == .key ? literal : nil
        self.holds = holds
    }

    /// What every key begins with.
    var commonPrefix: [UInt8] { only ?? prefix }

    /// The file of a key that lives here.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and what is wrong with it.
    func path(of key: Bytes) throws(StateError) -> FilePath {
        try FileName.path(of: key, from: prefix.count)
    }

    /// The key whose value a file is; nil if the file belongs to none of these keys.
    func key(of path: FilePath) -> Key? {
        guard let relative = FileName.key(of: path),
            let key = try? Key(bytes: prefix + relative.bytes),
            key.bytes.withUnsafeBytes({ holds($0) })
        else { return nil }
        return key
    }
}
