package import Glibc

/// Calls `body` with the address of a Unix socket; a name that begins with `@` is abstract.
///
/// See unix(7).
package func withUnixAddress<R>(
    of name: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> R
) rethrows -> R {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(name.utf8)
    let isAbstract = bytes.first == UInt8(ascii: "@")
    if isAbstract { bytes[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    // An abstract name ends where the address does.
    let family = MemoryLayout<sa_family_t>.size
    let size = isAbstract ? family + bytes.count : MemoryLayout<sockaddr_un>.size
    return try withUnsafePointer(to: &address) {
        try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            try body($0, socklen_t(size))
        }
    }
}
