import StateEngine

/// The metadata of a named handler: its position and its patterns.
///
/// ```
/// name   handler:<uid>:<name>
/// text   <position>               the last handled revision; - to begin with a snapshot
///        <epoch of the position>
///        <time of the last DONE>  in milliseconds since 1970; 0 if there was none
///        <pattern>
///        …                        one a line; a pattern has no control characters
/// ```
struct HandlerRecord {
    /// Nil if it begins with a snapshot.
    var position: Int64?
    /// The epoch of the position.
    var epoch: Epoch
    /// Wall time of the last DONE in milliseconds since 1970; 0 if there was none.
    var time: Int64
    /// Sorted, each once.
    var patterns: [String]

    static func name(_ name: Bytes, of uid: UInt32) -> String {
        "\(prefix(of: uid))\(String(decoding: name, as: UTF8.self))"
    }

    static func prefix(of uid: UInt32) -> String { "handler:\(uid):" }

    /// The uid and the name of a handler in the name of its metadata.
    static func parts(of name: String) -> (uid: Int64, name: Substring)? {
        let parts = name.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "handler", let uid = Int64(parts[1]) else { return nil }
        return (uid, parts[2])
    }
}

extension HandlerRecord {
    /// Parses the metadata.
    ///
    /// - Throws: ``StateError/Code/corrupt``, if this version does not write such a text.
    init(_ text: String, of name: String) throws(StateError) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count > 3, lines[0] == "-" || Int64(lines[0]) != nil,
            let epoch = Epoch(String(lines[1])), let time = Int64(lines[2])
        else {
            throw StateError(
                .corrupt,
                "the record of '\(name)' cannot be read; use STATE.HANDLER FORGET to begin anew"
            )
        }
        position = Int64(lines[0])
        self.epoch = epoch
        self.time = time
        patterns = lines[3...].map(String.init)
    }

    var text: String {
        let position = position.map(String.init) ?? "-"
        return "\(position)\n\(epoch)\n\(time)\n\(patterns.joined(separator: "\n"))"
    }
}
