import Glibc
import StateClient
import StateModel
import StateSystem

/// A file or standard input, read in blocks.
struct Input: ~Copyable {
    private let descriptor: Int32
    private let name: String
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var isAtStart = true

    /// Longer than any line for a value of 8 MiB, even if each of its bytes is escaped.
    static let lineByteLimit = 64 << 20

    /// Opens a file, a device, or a pipe that somebody writes to; `-` is standard input.
    init(path: [UInt8]) throws(Failure) {
        guard path != [UInt8(ascii: "-")] else {
            (descriptor, name) = (STDIN_FILENO, "standard input")
            return
        }
        name = String(decoding: path, as: UTF8.self)
        let cString = path.map { CChar(bitPattern: $0) } + [0]
        do throws(OpenFailure) {
            descriptor = try NamedFile.open(cString, O_RDONLY, as: .stream)
        } catch {
            throw .file(error.sentence(name))
        }
    }

    /// Standard input.
    init() {
        (descriptor, name) = (STDIN_FILENO, "standard input")
    }

    deinit {
        if descriptor > STDERR_FILENO { close(descriptor) }
    }

    /// The next line; nil at the end.
    ///
    /// It has neither its line end, LF or CR LF, nor a BOM. The last line may lack a line
    /// end.
    ///
    /// - Throws: if the text is UTF-16, or the line longer than ``lineByteLimit``.
    mutating func nextLine() throws(Failure) -> ArraySlice<UInt8>? {
        var searched = start
        while true {
            if let newline = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = newline + 1 }
                return try line(endingAt: newline)
            }
            searched = buffer.count
            guard !isAtEnd else { break }
            guard buffer.count - start <= Self.lineByteLimit else {
                throw .file("\(name): a line is longer than \(Self.lineByteLimit) bytes")
            }
            let moved = start
            buffer.removeFirst(start)
            start = 0
            searched -= moved
            try fill()
        }
        guard start < buffer.count else { return nil }
        defer { start = buffer.count }
        return try line(endingAt: buffer.count)
    }

    private mutating func line(endingAt end: Int) throws(Failure) -> ArraySlice<UInt8> {
        var line = buffer[start..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard isAtStart else { return line }
        isAtStart = false
        return try droppingMark(line)
    }

    private func droppingMark(_ text: ArraySlice<UInt8>) throws(Failure) -> ArraySlice<UInt8> {
        do throws(StateError) {
            return text.dropFirst(try ByteOrderMark.length(in: text))
        } catch {
            throw .file("\(name): \(error.message)")
        }
    }

    /// All of a text, without a BOM.
    ///
    /// - Throws: if it is UTF-16, or longer than `limit` bytes.
    mutating func readText(limit: Int) throws(Failure) -> [UInt8] {
        let text = try readAll(limit: limit)
        guard text.count <= limit else {
            throw .file("\(name) has more than \(limit) bytes; split it")
        }
        return Array(try droppingMark(text[...]))
    }

    /// All of it, but if it is longer than `limit` bytes, at least `limit` + 1 bytes.
    mutating func readAll(limit: Int) throws(Failure) -> [UInt8] {
        while !isAtEnd, buffer.count <= limit { try fill() }
        return buffer
    }

    private mutating func fill() throws(Failure) {
        let room = 64 << 10
        let begin = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: room))
        let count = buffer.withUnsafeMutableBytes { bytes in
            while true {
                let count = read(descriptor, bytes.baseAddress.map { $0 + begin }, room)
                if count >= 0 || errno != EINTR { return count }
            }
        }
        buffer.removeLast(room - max(0, count))
        if count == 0 { isAtEnd = true }
        guard count >= 0 else {
            throw .file("cannot read \(name): \(errno == EBADF ? "it is closed" : lastError)")
        }
    }
}
