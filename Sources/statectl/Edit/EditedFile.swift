import CLinux
import Glibc
import StateModel

/// A value in a file of its own, for an editor.
///
/// The file is removed with this object, unless ``keep()`` was called.
final class EditedFile {
    let path: String
    /// The first content of the file.
    private let original: [UInt8]
    /// Whether the file ends in a newline that the value does not have.
    private let hasAddedNewline: Bool
    private var isKept = false

    /// The most that is read back, in bytes: more than any value that a daemon accepts.
    private static let byteLimit = 64 << 20

    /// Writes a file that only this user can read.
    init(_ value: [UInt8], of key: Key) throws(Failure) {
        let newline = UInt8(ascii: "\n")
        hasAddedNewline = value.last != newline
        original = hasAddedNewline && !value.isEmpty ? value + [newline] : value
        let suffix = Self.suffix(of: key, value)
        let template = (environmentVariable("TMPDIR") ?? "/tmp") + "/statectl-XXXXXX" + suffix
        var bytes = template.utf8.map { CChar(bitPattern: $0) } + [0]
        let descriptor = mkstemps(&bytes, Int32(suffix.utf8.count))
        guard descriptor >= 0 else {
            throw .output("\(template) cannot be created: \(lastError)")
        }
        path = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { close(descriptor) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        let code = writeAll(original, to: descriptor)
        guard code == 0 else {
            throw .output("\(path) cannot be written: \(String(cString: strerror(code)))")
        }
    }

    deinit { if !isKept { remove() } }

    /// Removes the file.
    func remove() { unlink(path) }

    /// Leaves the file where it is.
    func keep() { isKept = true }

    /// The edited value.
    ///
    /// - Throws: if the file cannot be read or is too long; the file is kept then.
    func value() throws(Failure) -> [UInt8] {
        var value = try bytes()
        if hasAddedNewline, value.last == UInt8(ascii: "\n") { value.removeLast() }
        return value
    }

    private func bytes() throws(Failure) -> [UInt8] {
        do throws(Failure) {
            var input = try Input(path: Array(path.utf8))
            let bytes = try input.readAll(limit: Self.byteLimit)
            guard bytes.count <= Self.byteLimit else {
                throw .file("\(path) has more than \(Self.byteLimit) bytes; nothing was set")
            }
            return bytes
        } catch {
            keep()
            throw error
        }
    }

    /// Runs the editor on the file and waits until it ends.
    ///
    /// - Throws: if the editor fails; a changed file is kept.
    func edit() throws(Failure) {
        let editor = environmentVariable("VISUAL") ?? environmentVariable("EDITOR") ?? "vi"
        // The variable is shell code: it may contain options for the editor.
        let words = ["/bin/sh", "-c", "\(editor) \"$@\"", editor, path]
        let arguments = cStrings(words.map(\.bytes))
        defer { for argument in arguments { free(argument) } }
        signal(SIGCHLD, SIG_DFL)
        var child: pid_t = 0
        let code = clinux_spawn_bound(&child, arguments, environ, STDIN_FILENO, STDOUT_FILENO)
        var reason: String?
        if code == 0 {
            // The terminal sends these signals to both processes; the editor handles them.
            let handlers = [SIGINT, SIGQUIT].map { ($0, signal($0, SIG_IGN)) }
            reason = failure(of: child)
            for (number, handler) in handlers { signal(number, handler) }
        } else {
            reason = "could not be started: \(String(cString: strerror(code)))"
        }
        guard let reason else { return }
        let isChanged = try bytes() != original
        if isChanged { keep() }
        let place = isChanged ? "; your text is saved in \(path)" : ""
        throw .file("the editor '\(editor)' \(reason); nothing was set\(place)")
    }

    // MARK: Kind of text

    /// Whether an editor preserves the bytes: UTF-8 whose only control characters are tabs and line
    /// ends.
    static func isText(_ bytes: [UInt8]) -> Bool {
        String(validating: bytes, as: UTF8.self) != nil
            && bytes.allSatisfy {
                $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D
            }
    }

    /// The file name extension, by which an editor knows the kind of text: that of the key, or
    /// `.json` for an object or an array.
    private static func suffix(of key: Key, _ value: [UInt8]) -> String {
        let segment = key.bytes.split(separator: UInt8(ascii: "/")).last ?? []
        if let dot = segment.lastIndex(of: UInt8(ascii: ".")), dot > segment.startIndex {
            let end = segment[(dot + 1)...]
            let isPlain = end.allSatisfy {
                $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") || $0 &- 0x30 < 10
            }
            if isPlain, (1...16).contains(end.count) {
                return "." + String(decoding: end, as: UTF8.self)
            }
        }
        let first = value.first { $0 > 0x20 }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[") ? ".json" : ""
    }
}
