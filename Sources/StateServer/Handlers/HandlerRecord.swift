import StateEngine

/// A named handler as it is noted: how far it has come, and what it is for.
///
/// ```
/// name   handler:<uid>:<name>
/// text   <position>              the last revision that it has handled; - where it is to begin with the state
///        <epoch of the position>
///        <time of the last DONE>  in milliseconds since 1970; 0 where there was none
///        <pattern>
///        …                        one a line, as they were given; a pattern has no control characters
/// ```
struct HandlerRecord {
    /// Nil where it is to begin with the state.
    var position: Int64?
    /// Of the store that the position is of.
    var epoch: Epoch
    /// Wall time of the last DONE in milliseconds since 1970; 0 where there was none.
    var time: Int64
    /// In order and each once.
    var patterns: [String]

    static func name(_ name: Bytes, of uid: UInt32) -> String {
        "\(prefix(of: uid))\(String(decoding: name, as: UTF8.self))"
    }

    static func prefix(of uid: UInt32) -> String { "handler:\(uid):" }

    /// The uid and the name of a handler that a note's name says.
    static func parts(of name: String) -> (uid: Int64, name: Substring)? {
        let parts = name.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "handler", let uid = Int64(parts[1]) else { return nil }
        return (uid, parts[2])
    }
}

extension HandlerRecord {
    /// Reads a note.
    ///
    /// - Throws: ``StateError/Code/corrupt``, where it is none that this version writes.
    init(_ text: String, of name: String) throws(StateError) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count > 3, lines[0] == "-" || Int64(lines[0]) != nil,
            let epoch = Epoch(String(lines[1])), let time = Int64(lines[2])
        else {
            throw StateError(
                .corrupt,
                "what is noted of '\(name)' cannot be read; STATE.HANDLER FORGET it to begin anew"
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
