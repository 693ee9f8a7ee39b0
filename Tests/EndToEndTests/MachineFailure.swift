import Glibc
import StateTestSupport
import Testing

/// Kills a daemon, as if the machine had failed: what of its log was not synced is zeros, and the machine
/// has started anew.
func failMachine(under daemon: Daemon) throws {
    // After a while without a commit, a frame says up to where the log is durable.
    try #require(try eventually { try !LastSegment(of: daemon).endsWithCommits })
    daemon.kill()
    let mark = open(daemon.dataPath + "/stated.db-boot", O_WRONLY)
    defer { close(mark) }
    try #require(write(mark, "another start", 13) == 13)
    let last = try LastSegment(of: daemon)
    let rest = last.bytes[last.durableEnd...].map { _ in 0 as UInt8 }
    let descriptor = open(last.path, O_WRONLY)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, rest, rest.count, off_t(last.durableEnd)) == rest.count)
}

/// The segment of a daemon's log that is being written.
private struct LastSegment {
    var path: String
    var bytes: [UInt8]
    /// Up to where its frames say that it is durable, see `Frame`.
    var durableEnd = 8_192
    var endsWithCommits = false

    init(of daemon: Daemon) throws {
        // The names are numbers.
        let paths = (0..<1_000).map { "\(daemon.dataPath)/log/\($0).log" }
        let segments = try paths.filter { access($0, F_OK) == 0 }.map {
            (path: $0, bytes: try readFile($0))
        }
        (path, bytes) = try #require(
            segments.max { word(of: $0.bytes, at: 32) < word(of: $1.bytes, at: 32) }
        )
        let number = word(of: bytes, at: 32)
        var offset = 8_192
        while offset + 40 <= bytes.count {
            let count = Int(word(of: bytes, at: offset) & 0xFFFF_FFFF)
            guard count > 0 else { break }
            if word(of: bytes, at: offset + 16) == number {
                durableEnd = max(durableEnd, Int(word(of: bytes, at: offset + 24)))
            }
            endsWithCommits = bytes[offset + 12] == 1
            offset += count
        }
    }
}

private func word(of bytes: [UInt8], at offset: Int) -> UInt64 {
    bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
}
