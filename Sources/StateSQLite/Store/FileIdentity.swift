import CLinux
import Glibc

/// Which file this is, as far as the file system tells: a copy is another one.
package struct FileIdentity: Hashable {
    var inode: Int64
    /// Nanoseconds since 1970; 0 where the file system keeps none.
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
