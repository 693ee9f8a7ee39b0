import Glibc
import StateClient
import StateModel

/// Standard output, in blocks: a verb that must be seen at once says ``flush()``.
struct Output {
    private var bytes: [UInt8] = []

    private static let blockByteCount = 64 << 10

    /// Whether a person looks at it.
    var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Adds bytes; nothing leaves before ``flush()`` or ``flushIfLarge()``.
    mutating func write(_ more: [UInt8]) { bytes += more }

    /// Adds text.
    mutating func write(_ text: String) { bytes += text.utf8 }

    /// Adds bytes escaped for a terminal and for one line.
    mutating func writeEscaped(_ more: [UInt8]) {
        more.withUnsafeBytes { EscapedText.append($0, to: &bytes) }
    }

    /// Adds a key escaped as it stands before ` = `.
    mutating func writeEscaped(key: [UInt8]) {
        key.withUnsafeBytes { EscapedText.append(key: $0, to: &bytes) }
    }

    /// Adds how many keys a commit changed; as JSON, its revision too.
    mutating func write(_ commit: Client.Commit, isJSON: Bool) {
        guard isJSON else { return write("\(commit.count)\n") }
        var object = JSONLine()
        object.add("revision", number: commit.revision)
        object.add("count", number: Int64(commit.count))
        write(object.line)
    }

    /// Writes what there is if it is a block.
    mutating func flushIfLarge() throws(Failure) {
        if bytes.count >= Self.blockByteCount { try flush() }
    }

    /// Writes what there is.
    ///
    /// - Throws: ``Failure/brokenPipe`` where nobody reads it any more.
    mutating func flush() throws(Failure) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                Glibc.write(
                    STDOUT_FILENO,
                    bytes.baseAddress.map { $0 + written },
                    bytes.count - written
                )
            }
            if count >= 0 {
                written += count
                continue
            }
            let number = errno
            guard number == EINTR || number == EAGAIN else {
                bytes.removeAll()
                if number == EPIPE { throw .brokenPipe }
                throw .file("standard output: \(String(cString: strerror(number)))")
            }
            if number == EAGAIN { Self.waitUntilWritable() }
        }
        bytes.removeAll(keepingCapacity: true)
    }

    /// A standard output that someone else made non-blocking is waited for.
    private static func waitUntilWritable() {
        var waiting = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        poll(&waiting, 1, -1)
    }

    /// Tells a person something on standard error: whatever the daemon quotes of what others have set, it cannot command the
    /// terminal.
    static func report(_ message: String) {
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
        let shown = lines.map { StateError.printable(String($0)) }.joined(separator: "\n")
        writeError("statectl: \(shown)\n")
    }

    /// Writes to standard error as it is; what cannot be written is lost.
    static func writeError(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }
}
