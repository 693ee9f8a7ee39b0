import StatePlatform

/// `count` bytes at `offset`, padded with zeros after the end of the file; nil if they cannot be
/// read.
package func readBytes(_ descriptor: Int32, count: Int, at offset: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var end = 0
    while end < count {
        let received = bytes.withUnsafeMutableBytes { bytes in
            pread(
                descriptor,
                bytes.baseAddress.map { $0 + end },
                count - end,
                off_t(offset + end)
            )
        }
        if received < 0, errno == EINTR { continue }
        guard received >= 0 else { return nil }
        if received == 0 { break }
        end += received
    }
    return end > 0 ? bytes : nil
}

/// The length of the file at `path`; nil if there is none.
func fileByteCount(_ path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : nil
}

extension [UInt8] {
    /// The big-endian number in `count` bytes from `offset`; 0 if they are out of range.
    package func number(at offset: Int, bytes count: Int) -> Int {
        guard offset >= 0, offset + count <= self.count else { return 0 }
        return self[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
}
