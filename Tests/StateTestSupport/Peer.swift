import StateEngine
package import StateWire

/// A client of a test: sends commands, one or many at once, and reads what comes back in its order.
package final class Peer {
    package let socket: ByteSocket
    private var parser = ReplyParser()

    package init(_ path: String) throws { socket = try ByteSocket(path: path) }

    /// A client on a socket that is connected.
    package init(_ socket: ByteSocket) { self.socket = socket }

    // MARK: Commands

    /// Sends commands in one write, each a line of words; `"` encloses a word with blanks or none at all.
    package func send(_ commands: String...) throws { try send(commands.map(Peer.words)) }

    /// Sends commands in one write.
    package func send(_ commands: [[[UInt8]]]) throws {
        var writer = RequestWriter()
        for command in commands { writer.append(command) }
        try socket.send(writer.bytes)
    }

    /// Sends one command and waits for what comes next.
    package func ask(_ command: String) throws -> Reply {
        try send(command)
        return try next()
    }

    /// Sends one command of these arguments and waits for what comes next.
    package func ask(_ command: [[UInt8]]) throws -> Reply {
        try send([command])
        return try next()
    }

    package static func words(_ line: String) -> [[UInt8]] {
        var words: [[UInt8]] = []
        var word: [UInt8]?
        var isQuoted = false
        for byte in line.utf8 {
            if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
                word = word ?? []
            } else if byte == UInt8(ascii: " "), !isQuoted {
                if let word { words.append(word) }
                word = nil
            } else {
                // In place: lines of megabytes are sent.
                if word?.append(byte) == nil { word = [byte] }
            }
        }
        if let word { words.append(word) }
        return words
    }

    // MARK: Replies

    /// Waits for the next reply or push.
    package func next() throws -> Reply {
        while true {
            if let reply = try parser.next() { return reply }
            guard let bytes = try socket.receive() else { throw SystemFailure("the stream ended") }
            bytes.withUnsafeBytes { parser.append($0) }
        }
    }

    /// Waits for the next so many.
    package func next(_ count: Int) throws -> [Reply] { try (0..<count).map { _ in try next() } }

    /// What has arrived whole by now.
    package func arrived() throws -> [Reply] {
        while let bytes = try socket.receiveAtOnce(), !bytes.isEmpty {
            bytes.withUnsafeBytes { parser.append($0) }
        }
        var replies: [Reply] = []
        while let reply = try parser.next() { replies.append(reply) }
        return replies
    }

    /// The replies up to the end of the stream.
    package func rest() throws -> [Reply] {
        let bytes = try socket.receiveAll()
        bytes.withUnsafeBytes { parser.append($0) }
        return try arrived()
    }

    // MARK: Transcripts

    /// Sends the lines of a transcript that begin with `> `, those that follow each other in one write, and reads
    /// as many replies and pushes as lines stand behind them; `(end)` is the end of the stream.
    ///
    /// - Returns: The transcript as it was.
    package func replay(_ transcript: String) throws -> String {
        var commands: [String] = []
        var lines: [String] = []
        for line in transcript.split(separator: "\n") {
            if line.hasPrefix("> ") {
                commands.append(String(line.dropFirst(2)))
                lines.append(String(line))
                continue
            }
            if !commands.isEmpty { try send(commands.map(Peer.words)) }
            commands = []
            if line == "(end)" {
                lines += try rest().map(\.shown) + [String(line)]
            } else {
                lines.append(try next().shown)
            }
        }
        return lines.joined(separator: "\n")
    }
}

extension Reply {
    /// One line: `+OK`, `"bulk"`, `5`, `-ERR sentence`, `(nil)`, `[elements]`, `{"name": value}`, `push[elements]`.
    ///
    /// `…` stands for what is another in each run: an epoch, a time, a process.
    package var shown: String {
        switch self {
        case .null: "(nil)"
        case .integer(let number): String(number)
        case .double(let number): String(number)
        case .boolean(let isTrue): String(isTrue)
        case .simple(let text): "+\(text)"
        case .bulk(let bytes): "\"\(bytes.shown)\""
        case .error(let error): "-\(error)"
        case .array(let elements): "[\(elements.map(\.shown).joined(separator: ", "))]"
        case .push(let elements): "push[\(elements.map(\.shown).joined(separator: ", "))]"
        case .map(let pairs): "{\(pairs.map(\.shown).joined(separator: ", "))}"
        }
    }

    /// The error that this is, as text.
    package var errorText: String? { if case .error(let error) = self { "\(error)" } else { nil } }
}

extension Reply.Pair {
    private static let names: Set = ["epoch", "time", "by", "owner", "id"]

    fileprivate var shown: String {
        let isVarying = key.textValue.map(Reply.Pair.names.contains) ?? false
        return "\(key.shown): \(isVarying ? "…" : value.shown)"
    }
}

extension [UInt8] {
    /// The bytes as text, control bytes and `\` and what is no ASCII as `\xNN`.
    fileprivate var shown: String {
        map { byte in
            let isPlain = byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\\")
            if isPlain { return String(UnicodeScalar(byte)) }
            return (byte < 16 ? "\\x0" : "\\x") + String(byte, radix: 16)
        }.joined()
    }
}
