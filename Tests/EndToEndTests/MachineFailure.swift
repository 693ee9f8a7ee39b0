import Glibc
import StateTestSupport
import Testing

/// Kills a daemon, as if the machine had failed: what of its log was not synced is zeros, and the machine
/// has started anew.
func failMachine(under daemon: Daemon) throws {
    // After 0.2 s without a commit, a frame says up to where the log is durable.
    usleep(400_000)
    daemon.kill()
    let mark = open(daemon.dataPath + "/stated.db-boot", O_WRONLY)
    defer { close(mark) }
    try #require(write(mark, "another start", 13) == 13)
    // The names are numbers.
    let paths = (0..<1_000).map { "\(daemon.dataPath)/log/\($0).log" }
    let segments = try paths.filter { access($0, F_OK) == 0 }.map {
        (path: $0, bytes: try readFile($0))
    }
    let last = try #require(segments.max { number(of: $0.bytes) < number(of: $1.bytes) })
    var bytes = last.bytes
    let end = durableEnd(of: bytes)
    bytes.replaceSubrange(end..., with: repeatElement(0, count: bytes.count - end))
    let descriptor = open(last.path, O_WRONLY)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, bytes, bytes.count, 0) == bytes.count)
}

private func word(of bytes: [UInt8], at offset: Int) -> UInt64 {
    bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
}

/// The number of a segment, see `SegmentHeader`.
private func number(of bytes: [UInt8]) -> UInt64 { word(of: bytes, at: 32) }

/// Up to where the frames of a segment say that it is durable, see `Frame`.
private func durableEnd(of bytes: [UInt8]) -> Int {
    var (end, offset) = (8_192, 8_192)
    while offset + 40 <= bytes.count {
        let count = Int(word(of: bytes, at: offset) & 0xFFFF_FFFF)
        guard count > 0 else { break }
        if word(of: bytes, at: offset + 16) == number(of: bytes) {
            end = max(end, Int(word(of: bytes, at: offset + 24)))
        }
        offset += count
    }
    return end
}
