import CLinux
import Glibc

/// A directory of a test's own, which goes with everything in it when the last reference does.
package final class TemporaryDirectory: Sendable {
    /// Its path, short enough for a socket's name to be added.
    package let path: String

    /// Makes an empty directory, mode 0700, below `parent`.
    package init(in parent: String = "/tmp") throws {
        var template = Array("\(parent)/stated.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemFailure(call: "mkdtemp", errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        _ = try? runCommand("rm", ["-rf", path])
    }

    /// The path of something in the directory.
    package func path(of name: String) -> String { "\(path)/\(name)" }

    /// Writes a file of these bytes and returns its path.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> String {
        let path = path(of: name)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemFailure(call: "open \(path)", errno) }
        defer { close(descriptor) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            guard count >= 0 else { throw SystemFailure(call: "write \(path)", errno) }
            written += count
        }
        return path
    }

    /// Writes a file of this text and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try write(Array(text.utf8), to: name)
    }
}

/// A system call that failed in a test's scaffolding.
package struct SystemFailure: Error, CustomStringConvertible {
    /// What was tried, and why it failed.
    package let description: String

    /// Names the call and what `errno` was after it.
    package init(call: String, _ number: Int32) {
        description = "\(call): \(String(cString: strerror(number)))"
    }

    /// Says it in words.
    package init(_ description: String) { self.description = description }
}

/// Whether a file has an extended attribute of this name.
package func hasAttribute(_ name: String, _ path: String) -> Bool {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return clinux_get_attribute(descriptor, name, nil, 0) > 0
}

/// The bytes of a file.
package func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemFailure(call: "open \(path)", errno) }
    defer { close(descriptor) }
    return readAll(descriptor)
}

/// Everything up to the end of a descriptor.
func readAll(_ descriptor: Int32) -> [UInt8] {
    var bytes: [UInt8] = []
    var room = [UInt8](repeating: 0, count: 64 << 10)
    while true {
        let count = read(descriptor, &room, room.count)
        if count > 0 {
            bytes += room[0..<count]
        } else if count == 0 || errno != EINTR {
            return bytes
        }
    }
}
