package import StateModel
package import StatePlatform

extension sockaddr_un {
    /// The address of a socket file.
    ///
    /// - Throws: ``StateError/Code/err``, naming the path and the limit.
    package init(servedAt path: String) throws(StateError) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, !bytes.contains(0) else {
            throw StateError(.err, "a socket path must not be empty or contain NUL")
        }
        guard bytes.count <= SocketLocation.pathByteLimit else {
            throw StateError(
                .err,
                "socket path '\(path)' has \(bytes.count) bytes; the limit is "
                    + "\(SocketLocation.pathByteLimit)"
            )
        }
        self.init(name: bytes)
    }

    /// The address with the name `bytes`, truncated to 108 bytes; an abstract name begins with NUL.
    package init(name bytes: [UInt8]) {
        self.init()
        sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &sun_path) { $0.copyBytes(from: bytes.prefix($0.count)) }
    }

    /// Calls `body` with the address in the form for system calls.
    ///
    /// - Parameters:
    ///   - nameByteCount: The bytes of an abstract name; nil for a path, which ends at its NUL.
    ///   - body: Borrows the address.
    /// - Returns: What `body` returns.
    package func withAddress<R>(
        nameByteCount: Int? = nil,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
    ) -> R {
        let size = nameByteCount.map { MemoryLayout<sa_family_t>.size + $0 }
        return withUnsafeBytes(of: self) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { address in
                guard let base = address.baseAddress else { preconditionFailure("no bytes") }
                return body(base, socklen_t(size ?? bytes.count))
            }
        }
    }
}
