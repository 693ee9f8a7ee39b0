import Glibc

/// A member of etcd: `http://127.0.0.1:2379` or `https://etcd1.example:2379`.
package struct Endpoint: Sendable, CustomStringConvertible {
    package let host: String
    package let port: String
    package let isSecure: Bool

    /// - Returns: Nil if the text is not such an address.
    package init?(_ text: String) {
        let schemes = [("https://", true), ("http://", false)]
        guard let (scheme, isSecure) = schemes.first(where: { text.hasPrefix($0.0) }) else {
            return nil
        }
        self.isSecure = isSecure
        var rest = text.dropFirst(scheme.count)
        if rest.last == "/" { rest.removeLast() }
        guard let colon = rest.lastIndex(of: ":"),
            let number = UInt16(rest[rest.index(after: colon)...])
        else { return nil }
        var host = rest[..<colon]
        if host.first == "[", host.last == "]" { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, number > 0, !host.contains("/"), !host.contains("@") else {
            return nil
        }
        (self.host, port) = (String(host), String(number))
    }

    package var description: String { "\(host):\(port)" }

    /// Connects a socket that does not block; it may not be connected yet.
    ///
    /// - Throws: ``LinkFailure/cluster(_:)``.
    func connect() throws(LinkFailure) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, port, &hints, &found)
        defer { if let found { freeaddrinfo(found) } }
        guard code == 0, let address = found?.pointee else {
            throw .cluster("\(host) has no address: \(String(cString: gai_strerror(code)))")
        }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.ai_family, type, 0)
        guard descriptor >= 0 else { throw .cluster("socket: \(String(cString: strerror(errno)))") }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
        guard
            Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0
                || errno == EINPROGRESS
        else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw .cluster("\(self): \(reason)")
        }
        return descriptor
    }
}

/// What ends the work of the link for now.
package enum LinkFailure: Error, Sendable {
    /// The daemon cannot be reached, or refuses what it is sent; with its error code, if it has one.
    case daemon(String, code: String?)
    /// The cluster cannot be reached, or refuses what it is asked.
    case cluster(String)
    /// What the daemon has must be compared with what the cluster has.
    case mustCompare(String)
}
