import CLinux

/// Checksums.
package enum Checksum {
    /// The CRC-32C of bytes, or of those before and these.
    ///
    /// - Complexity: O(*n*), about 10 GB a second where the processor has the instruction.
    package static func crc32c(
        _ bytes: UnsafeRawBufferPointer,
        after checksum: UInt32 = 0
    ) -> UInt32 {
        clinux_crc32c(checksum, bytes.baseAddress, bytes.count)
    }
}
