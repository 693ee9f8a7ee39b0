import CLinux
import Glibc

/// The identity of a file, as far as the file system has one: a copy has another.
package struct FileIdentity: Hashable {
    var inode: Int64
    /// Nanoseconds since 1970; 0 if the file system has none.
    var birthTime: Int64
}

extension FileIdentity {
    /// The identity of the file at `path`; nil with errno.
    package init?(path: String) {
        let place = clinux_open_place(path)
        guard place >= 0 else { return nil }
        defer { close(place) }
        var status = stat()
        guard fstat(place, &status) == 0 else { return nil }
        inode = Int64(truncatingIfNeeded: status.st_ino)
        birthTime = Swift.max(0, clinux_birth_time(place))
    }
}
