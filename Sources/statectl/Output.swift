import Glibc
import StateClient
import StateModel

/// Standard output, in blocks.
///
/// A verb whose output must be visible at once calls ``flush()``.
struct Output {
    private var bytes: [UInt8] = []
    private var pager: Pager?
    /// Before a pager takes the place of the terminal.
    private let hasStyles = Style.isShown

    private static let blockByteCount = 64 << 10

    /// Whether it is a terminal.
    var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Sends the output through the user's pager if it is for a terminal.
    mutating func usePager() { pager = Pager.start() }

    /// Writes the buffer, and waits until the user has left the pager.
    ///
    /// - Throws: as ``flush()``.
    mutating func end() throws(Failure) {
        defer {
            pager?.wait()
            pager = nil
        }
        try flush()
    }

    /// Adds what `body` adds, in a style if it is for a terminal.
    mutating func write(in style: Style, _ body: (inout Output) -> Void) {
        guard hasStyles else { return body(&self) }
        write("\u{1B}[\(style.rawValue)m")
        body(&self)
        // The line ends behind the style: a pager shows each line by itself.
        let endsLine = bytes.last == UInt8(ascii: "\n")
        if endsLine { bytes.removeLast() }
        write("\u{1B}[m" + (endsLine ? "\n" : ""))
    }

    /// Adds bytes; nothing leaves before ``flush()`` or ``flushIfLarge()``.
    mutating func write(_ more: [UInt8]) { bytes += more }

    /// Adds text.
    mutating func write(_ text: String) { bytes += text.utf8 }

    /// Adds bytes escaped for a terminal and for one line.
    mutating func writeEscaped(_ more: [UInt8]) {
        more.withUnsafeBytes { EscapedText.append($0, to: &bytes) }
    }

    /// Adds a line of fields, escaped, with tabs between them.
    mutating func writeFields(_ fields: [[UInt8]]) {
        for (index, field) in fields.enumerated() {
            if index > 0 { write("\t") }
            writeEscaped(field)
        }
        write("\n")
    }

    /// Adds a line: an object, or fields with tabs between them.
    mutating func write(
        isJSON: Bool,
        _ object: @autoclosure () -> JSONLine,
        orFields fields: @autoclosure () -> [[UInt8]]
    ) {
        if isJSON { write(json: object()) } else { writeFields(fields()) }
    }

    /// Adds a line of escaped fields and a message of the daemon, in which \ stands for itself.
    mutating func writeFields(_ fields: [[UInt8]], message: String) {
        for field in fields {
            writeEscaped(field)
            write("\t")
        }
        write(StateError.printable(message) + "\n")
    }

    /// Adds the line `key = value`, escaped so that `import` can read it.
    mutating func writePair(_ key: [UInt8], _ value: [UInt8], in style: Style? = nil) {
        if let style {
            write(in: style) { $0.writeKey(key) }
        } else {
            writeKey(key)
        }
        write(" = ")
        value.withUnsafeBytes { EscapedText.append(value: $0, to: &bytes) }
        write("\n")
    }

    private mutating func writeKey(_ key: [UInt8]) {
        key.withUnsafeBytes { EscapedText.append(key: $0, to: &bytes) }
    }

    /// Adds the same, a tab and `was old`.
    mutating func writePair(_ key: [UInt8], _ value: [UInt8], was old: [UInt8]) {
        writePair(key, value)
        bytes.removeLast()
        write("\twas ")
        writeEscaped(old)
        write("\n")
    }

    /// Adds an object as a line.
    mutating func write(json object: JSONLine) { bytes += object.line }

    /// Adds how many keys a commit changed; in JSON, also its revision.
    mutating func write(_ commit: Client.Commit, isJSON: Bool) {
        guard isJSON else { return write("\(commit.count)\n") }
        write(json: ["revision": .number(commit.revision), "count": .number(Int64(commit.count))])
    }

    /// Adds `name: text` lines with aligned texts of the daemon, in which \ stands for itself.
    mutating func writeAligned(_ fields: [(name: String, text: String)]) {
        let width = fields.map(\.name.utf8.count).max() ?? 0
        for (name, text) in fields {
            write(name + ":" + String(repeating: " ", count: width - name.utf8.count + 1))
            write(StateError.printable(text) + "\n")
        }
    }

    /// Adds `name: value` lines with aligned, escaped values.
    mutating func writeAligned(_ fields: [(name: String, value: [UInt8])]) {
        let width = fields.map(\.name.utf8.count).max() ?? 0
        for (name, value) in fields {
            write(name + ":" + String(repeating: " ", count: width - name.utf8.count + 1))
            writeEscaped(value)
            write("\n")
        }
    }

    /// Writes aligned rows of escaped cells below the names of the columns.
    mutating func writeTable(_ names: [String], _ rows: [[[UInt8]]]) throws(Failure) {
        let rows = [names.map(\.bytes)] + rows
        let widths = names.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        for row in rows {
            for (cell, width) in zip(row.dropLast(), widths) {
                writeEscaped(cell)
                write(String(repeating: " ", count: width - cell.count + 2))
            }
            writeEscaped(row[row.count - 1])
            write("\n")
            try flushIfLarge()
        }
    }

    /// Writes the buffer if it has at least a block.
    mutating func flushIfLarge() throws(Failure) {
        if bytes.count >= Self.blockByteCount { try flush() }
    }

    /// Writes the buffer.
    ///
    /// - Throws: ``Failure/brokenPipe`` if nobody reads it any more.
    mutating func flush() throws(Failure) {
        let number = writeAll(bytes, to: STDOUT_FILENO)
        bytes.removeAll(keepingCapacity: number == 0)
        if number == EPIPE { throw .brokenPipe }
        guard number == 0 else {
            let reason = number == EBADF ? "it is closed" : String(cString: strerror(number))
            throw .output("standard output: \(reason); what the command does was done")
        }
    }

    /// Writes a message to standard error, escaped: the daemon may quote what others have set, and
    /// that must not control the terminal.
    static func report(_ message: String) {
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
        let shown = lines.map { StateError.printable(String($0)) }.joined(separator: "\n")
        writeError("statectl: \(shown)\n")
    }

    /// Writes to standard error without escaping; what cannot be written is lost.
    static func writeError(_ text: String) {
        _ = Glibc.write(STDERR_FILENO, text, text.utf8.count)
    }
}

/// A line on a terminal while an operation is running.
struct ProgressLine {
    private let isShown = isatty(STDERR_FILENO) == 1

    init(_ text: String) { show(text) }

    /// Replaces the text.
    func show(_ text: String) { if isShown { Output.writeError("\r\u{1B}[K\(text)") } }

    /// Clears the line.
    func end() { show("") }
}
