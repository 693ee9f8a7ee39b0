import CTLS
import Glibc
import StateSystem

/// The certificates of a node.
package struct Certificates: Sendable {
    /// The file of the authorities that sign the members' certificates.
    package var authorities: String
    /// The file of this node's certificate, and that of its key; nil if etcd asks for none.
    package var own: (certificate: String, key: String)?

    package init(authorities: String, own: (certificate: String, key: String)?) {
        (self.authorities, self.own) = (authorities, own)
    }

    fileprivate var paths: [String] {
        [authorities] + (own.map { [$0.certificate, $0.key] } ?? [])
    }
}

/// A connected socket, perhaps under TLS 1.2 or later; it never blocks.
final class SecureStream {
    let descriptor: Int32
    private var context: OpaquePointer?
    private var connection: OpaquePointer?
    private let name: String
    /// TLS must write before it can read, or the reverse.
    private(set) var wantsWrite = false

    enum Outcome: Equatable {
        case moved(Int)
        case mustWait
        case ended
    }

    /// - Throws: ``LinkFailure/cluster(_:)``, if a certificate cannot be used.
    init(_ endpoint: Endpoint, _ certificates: Certificates?) throws(LinkFailure) {
        name = "\(endpoint)"
        descriptor = try endpoint.connect()
        guard endpoint.isSecure else { return }
        do throws(LinkFailure) { try secure(endpoint, certificates) } catch {
            release()
            throw error
        }
    }

    deinit { release() }

    private func release() {
        SSL_free(connection)
        SSL_CTX_free(context)
        close(descriptor)
        (connection, context) = (nil, nil)
    }

    private func secure(_ endpoint: Endpoint, _ certificates: Certificates?) throws(LinkFailure) {
        guard let certificates else {
            throw .cluster("\(name) is https, and no authorities are given (--ca)")
        }
        // OpenSSL opens them by name, and would wait for the other end of a FIFO.
        for path in certificates.paths {
            do throws(OpenFailure) { try NamedFile.require(path) } catch {
                throw .cluster(error.sentence(path))
            }
        }
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw failure("TLS") }
        self.context = context
        guard ctls_require_tls12(context) == 1,
            SSL_CTX_load_verify_locations(context, certificates.authorities, nil) == 1
        else { throw failure("the authorities in \(certificates.authorities)") }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        if let own = certificates.own {
            guard SSL_CTX_use_certificate_chain_file(context, own.certificate) == 1 else {
                throw failure("the certificate in \(own.certificate)")
            }
            guard SSL_CTX_use_PrivateKey_file(context, own.key, SSL_FILETYPE_PEM) == 1,
                SSL_CTX_check_private_key(context) == 1
            else { throw failure("the key in \(own.key)") }
        }
        guard let connection = SSL_new(context) else { throw failure("TLS") }
        self.connection = connection
        // The name or the address of the member must be that of its certificate.
        var address = in6_addr()
        let isAddress =
            inet_pton(AF_INET, endpoint.host, &address) == 1
            || inet_pton(AF_INET6, endpoint.host, &address) == 1
        let isNamed =
            isAddress
            ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), endpoint.host) == 1
            : SSL_set1_host(connection, endpoint.host) == 1
                && ctls_set_server_name(connection, endpoint.host) == 1
        let protocols: [UInt8] = [2] + Array("h2".utf8)
        guard isNamed, SSL_set_fd(connection, descriptor) == 1,
            SSL_set_alpn_protos(connection, protocols, UInt32(protocols.count)) == 0
        else { throw failure("TLS") }
        ctls_allow_moving_writes(connection)
        SSL_set_connect_state(connection)
    }

    private func failure(_ what: String) -> LinkFailure {
        let code = ERR_get_error()
        ERR_clear_error()
        let reason =
            ERR_reason_error_string(code).map { String(cString: $0) } ?? "it cannot be used"
        return .cluster("\(what) (\(name)): \(reason)")
    }

    // MARK: Bytes

    /// Whether TLS has read bytes from the socket that were not taken.
    var hasInput: Bool { connection.map { SSL_has_pending($0) == 1 } ?? false }

    /// - Throws: ``LinkFailure/cluster(_:)``.
    func read(into buffer: inout [UInt8]) throws(LinkFailure) -> Outcome {
        guard let connection else {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            return try outcome(count)
        }
        let capacity = Int32(buffer.count)
        return try outcome(SSL_read(connection, &buffer, capacity), of: connection)
    }

    /// - Throws: ``LinkFailure/cluster(_:)``.
    func write(_ bytes: ArraySlice<UInt8>) throws(LinkFailure) -> Outcome {
        let result = bytes.withUnsafeBytes { bytes -> Int in
            guard let connection else {
                return send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            return Int(SSL_write(connection, bytes.baseAddress, Int32(clamping: bytes.count)))
        }
        guard let connection else { return try outcome(result) }
        return try outcome(Int32(result), of: connection)
    }

    private func outcome(_ count: Int) throws(LinkFailure) -> Outcome {
        if count > 0 { return .moved(count) }
        if count == 0 { return .ended }
        guard errno == EAGAIN || errno == EINTR || errno == ENOTCONN else {
            throw .cluster("\(name): \(String(cString: strerror(errno)))")
        }
        return .mustWait
    }

    private func outcome(
        _ result: Int32,
        of connection: OpaquePointer
    ) throws(LinkFailure) -> Outcome {
        wantsWrite = false
        if result > 0 { return .moved(Int(result)) }
        switch SSL_get_error(connection, result) {
        case SSL_ERROR_WANT_READ: return .mustWait
        case SSL_ERROR_WANT_WRITE:
            wantsWrite = true
            return .mustWait
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SYSCALL where errno == ENOTCONN || errno == EAGAIN: return .mustWait
        case SSL_ERROR_SYSCALL:
            let reason = errno == 0 ? "the connection was closed" : String(cString: strerror(errno))
            throw .cluster("\(name): \(reason)")
        default:
            let verified = SSL_get_verify_result(connection)
            guard verified == X509_V_OK else {
                let reason = String(cString: X509_verify_cert_error_string(verified))
                throw .cluster("the certificate of \(name) is refused: \(reason)")
            }
            throw failure("TLS")
        }
    }
}
