import CLinux

/// The identity of a file, as far as the file system has one: a copy has another.
package struct FileIdentity: Hashable {
    var inode: Int64
    /// Nanoseconds since 1970; 0 if the file system has none.
    var birthTime: Int64
}

extension FileIdentity {
    /// The identity of the file at `path`; nil with errno.
    package init?(path: String) {
        var (number, born): (UInt64, Int64) = (0, 0)
        guard clinux_identify_file(path, &number, &born) == 0 else { return nil }
        inode = Int64(truncatingIfNeeded: number)
        birthTime = Swift.max(0, born)
    }
}
