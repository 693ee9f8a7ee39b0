import CLinux
import Glibc
import StateEngine

/// A datagram socket in the place of journald's.
package final class JournalStage {
    package let path: String
    private let descriptor: Int32

    package init(path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0, withUnixAddress(of: path, { bind(descriptor, $0, $1) }) == 0 else {
            throw SystemFailure(call: "bind \(path)", errno)
        }
    }

    /// Shuts down first: a process that another test is just starting has the descriptor, too, until
    /// it runs its program.
    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// The fields of the next entry, once it is there.
    package func next() throws -> [String: [UInt8]] {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, 20_000) == 1 else { throw SystemFailure("no entry in 20 s") }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        var files = [Int32](repeating: -1, count: Int(CLINUX_DESCRIPTORS))
        var fileCount: Int32 = 0
        let count = clinux_receive_descriptors(
            descriptor,
            &bytes,
            bytes.count,
            &files,
            &fileCount
        )
        guard count >= 0 else { throw SystemFailure(call: "recvmsg", errno) }
        guard fileCount == 1 else { return try JournalStage.fields(bytes[..<count]) }
        defer { close(files[0]) }
        guard count == 0, clinux_is_constant_memory(files[0]) == 1 else {
            throw SystemFailure("a file of an entry that can change")
        }
        return try JournalStage.fields(try contents(of: files[0])[...])
    }

    private func contents(of file: Int32) throws -> [UInt8] {
        var status = stat()
        fstat(file, &status)
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        guard pread(file, &bytes, bytes.count, 0) == bytes.count else {
            throw SystemFailure(call: "pread", errno)
        }
        return bytes
    }

    /// Reads an entry as https://systemd.io/JOURNAL_NATIVE_PROTOCOL/ has it.
    private static func fields(_ entry: ArraySlice<UInt8>) throws -> [String: [UInt8]] {
        var (fields, rest) = ([String: [UInt8]](), entry)
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[..<end]
            rest = rest[(end + 1)...]
            if let sign = line.firstIndex(of: UInt8(ascii: "=")) {
                fields[String(decoding: line[..<sign], as: UTF8.self)] = Array(line[(sign + 1)...])
                continue
            }
            let count = rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
            let value = rest.dropFirst(8).prefix(count)
            rest = rest.dropFirst(8 + count)
            guard value.count == count, rest.popFirst() == UInt8(ascii: "\n") else {
                throw SystemFailure("a field is cut: \(line)")
            }
            fields[String(decoding: line, as: UTF8.self)] = Array(value)
        }
        guard rest.isEmpty else { throw SystemFailure("the entry is cut") }
        return fields
    }
}
