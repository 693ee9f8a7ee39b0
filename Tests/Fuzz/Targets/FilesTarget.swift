import CFuzzer
import CLinux
import Glibc
import StateEngine
import StateTestSupport

/// A directory of files with any names and contents, as FileBacking opens it.
///
/// ```
/// each: 0  kind  0 a file   1 a directory   2 a link to the content   3 a pipe   4 a journal with this content, and its checksum
///       1  how many bytes the name has, then the name
///          how many bytes the content has, then the content
/// ```
enum FilesTarget {
    private static let place = Result { try TemporaryDirectory(in: "/dev/shm") }

    static func run(_ bytes: Bytes) throws {
        let place = try place.get()
        // Below others, so that what leads out of it leads to nothing.
        let directory = place.path(of: "a/b/c/d")
        cfuzzer_remove(place.path(of: "a"))
        for path in ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/.stated"] {
            mkdir(place.path(of: path), 0o700)
        }
        var input = bytes
        while let kind = take(1, &input)?.first, let name = text(&input), let content = text(&input)
        {
            try add(kind % 5, name, content, to: place)
        }
        do throws(StateError) {
            let backing = FileBacking(directory: directory, valueByteCount: 200)
            let keyspace = try LocalKeyspace(backing: backing)
            defer { keyspace.close() }
            let faults = keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
            require(faults.isEmpty, "\(faults)")
            _ = backing.unreadable
            try keyspace.apply([.set("k", [1]), .set("a/b", [2]), .delete("a")])
        } catch {
            require(!error.message.isEmpty, "an error without a message")
        }
    }

    private static func take(_ count: Int, _ input: inout Bytes) -> [UInt8]? {
        guard input.count >= count else { return nil }
        defer { input = input.slice(count, input.count) }
        return Array(input.slice(0, count))
    }

    /// Bytes with their number before them; those that are there, where there are fewer.
    private static func text(_ input: inout Bytes) -> [UInt8]? {
        guard let count = take(1, &input)?.first else { return nil }
        return take(min(Int(count), input.count), &input)
    }

    private static func add(
        _ kind: UInt8,
        _ name: [UInt8],
        _ content: [UInt8],
        to place: TemporaryDirectory
    ) throws {
        let root = "a/b/c/d/"
        guard kind < 4 else {
            try write(journal(content), to: root + ".stated/journal", in: place)
            return
        }
        let names = name.split(separator: UInt8(ascii: "/"))
        let isBelow = names.allSatisfy { $0 != [46] && $0 != [46, 46] && !$0.contains(0) }
        guard isBelow, let last = names.last, last.count < 256 else { return }
        // Bytes that are no UTF-8 are replaced: they are no names of keys either way.
        var path = root
        for name in names.dropLast() {
            path += String(decoding: name.prefix(80), as: UTF8.self)
            mkdir(place.path(of: path), 0o700)
            path += "/"
        }
        path += String(decoding: last.prefix(80), as: UTF8.self)
        switch kind {
        case 0: try? write(content, to: path, in: place)
        case 1: mkdir(place.path(of: path), 0o700)
        case 2: symlink(String(decoding: content, as: UTF8.self), place.path(of: path))
        default: mkfifo(place.path(of: path), 0o600)
        }
    }

    /// In place of what has this name: to open a pipe that nobody reads would wait for ever.
    private static func write(
        _ content: [UInt8],
        to path: String,
        in place: TemporaryDirectory
    ) throws {
        unlink(place.path(of: path))
        try place.write(content, to: path)
    }

    private static func journal(_ steps: [UInt8]) -> [UInt8] {
        let bytes = Array("stated files 1\n".utf8) + steps
        let checksum = bytes.withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
        return bytes + (0..<8).map { UInt8(truncatingIfNeeded: UInt64(checksum) >> ($0 * 8)) }
    }
}
