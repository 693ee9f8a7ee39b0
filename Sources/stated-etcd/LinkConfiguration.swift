import Glibc
import StateEtcd
import StateJSON
import StateModel
import StateSystem
import StateWire

/// How to reach etcd and the daemon: a file in JSON5, and the command line, which overrides it.
struct LinkConfiguration {
    private var endpoints: [String] = []
    private var socket: String?
    private var authorities: String?
    private var certificate: String?
    private var key: String?
    private var bounds = MirrorLink.Bounds()

    /// - Parameter arguments: Those after the name of the program, without `--help` and `--version`.
    /// - Throws: ``StateError/Code/err``: what is wrong, and where.
    init(_ arguments: [String]) throws(StateError) {
        var rest = arguments[...]
        var given: [(String, String)] = []
        while let name = rest.popFirst() {
            guard LinkConfiguration.options.contains(name), let value = rest.popFirst() else {
                throw StateError(
                    .err,
                    LinkConfiguration.options.contains(name)
                        ? "\(name) needs a value"
                        : "unknown option '\(name)'; see stated-etcd --help"
                )
            }
            given.append((name, value))
        }
        for (name, value) in given where name == "--config" { try read(value) }
        for (name, value) in given where name != "--config" { try take(name, value) }
    }

    private static let options: Set<String> = [
        "--config", "--endpoints", "--socket", "--ca", "--cert", "--key", "--max-txn-ops",
        "--max-request-bytes",
    ]

    /// What etcd can be configured to take: operations of a transaction, and bytes of a request.
    private static let (operations, bytes) = (8...100_000, 65_536...1 << 30)

    private static func number(
        _ text: String,
        _ name: String,
        _ range: ClosedRange<Int>
    ) throws(StateError) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw StateError(
                .err,
                "\(name): '\(text)' is not a number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    private mutating func take(_ name: String, _ value: String) throws(StateError) {
        switch name {
        case "--max-txn-ops":
            bounds.operationCount = try LinkConfiguration.number(
                value,
                name,
                LinkConfiguration.operations
            )
        case "--max-request-bytes":
            bounds.byteCount = try LinkConfiguration.number(value, name, LinkConfiguration.bytes)
        case "--endpoints": endpoints = value.split(separator: ",").map(String.init)
        case "--socket": socket = value
        case "--ca": authorities = value
        case "--cert": certificate = value
        default: key = value
        }
    }

    private mutating func read(_ path: String) throws(StateError) {
        let document = JSON5Document(try LinkConfiguration.bytes(of: path))
        if let fault = document.faults.first {
            throw StateError(.err, "\(path):\(fault.place): \(fault.message)")
        }
        guard case .object(let members) = document.value else {
            throw StateError(.err, "\(path): expected an object in { }")
        }
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            switch (name, value) {
            case ("endpoints", .array(let elements)):
                endpoints = []
                for element in elements {
                    guard case .string(let text) = element else {
                        throw StateError(.err, "\(path): endpoints: expected addresses in quotes")
                    }
                    endpoints.append(text)
                }
            case ("socket", .string(let text)): socket = text
            case ("ca", .string(let text)): authorities = text
            case ("cert", .string(let text)): certificate = text
            case ("key", .string(let text)): key = text
            case ("maxTxnOps", .number(let number)):
                try take("--max-txn-ops", "\(number)")
            case ("maxRequestBytes", .number(let number)):
                try take("--max-request-bytes", "\(number)")
            default:
                throw StateError(
                    .err,
                    "\(path): \(name): expected endpoints: [\"https://…\"], socket, ca, cert and key as "
                        + "paths in quotes, and maxTxnOps and maxRequestBytes as numbers"
                )
            }
        }
    }

    private static func bytes(of path: String) throws(StateError) -> [UInt8] {
        let descriptor: Int32
        do throws(OpenFailure) {
            descriptor = try NamedFile.open(path, O_RDONLY, as: .stream)
        } catch {
            throw StateError(.err, error.sentence(path, "read"))
        }
        defer { close(descriptor) }
        let limit = 1 << 20
        guard let bytes = NamedFile.contents(of: descriptor, limit: limit), bytes.count <= limit
        else { throw StateError(.err, "\(path) cannot be read, or has more than 1 MiB") }
        return bytes
    }

    /// What the link is given.
    ///
    /// - Throws: ``StateError/Code/err``, if it cannot be used.
    func link() throws(StateError) -> MirrorLink.Options {
        var members: [Endpoint] = []
        for text in endpoints.isEmpty ? ["http://127.0.0.1:2379"] : endpoints {
            guard let endpoint = Endpoint(text) else {
                throw StateError(
                    .err,
                    "endpoint '\(text)' is not an address such as https://etcd1.example:2379"
                )
            }
            members.append(endpoint)
        }
        var certificates: Certificates?
        if let authorities {
            guard (certificate == nil) == (key == nil) else {
                throw StateError(.err, "a certificate needs its key: give both, cert and key")
            }
            let own = certificate.flatMap { file in key.map { (file, $0) } }
            certificates = Certificates(authorities: authorities, own: own)
        } else if members.contains(where: \.isSecure) {
            throw StateError(.err, "an https endpoint needs the file of its authorities: --ca")
        }
        // A path that cannot be used ends the start; the choice is made at each connection.
        _ = try SocketLocation.process.clientChoice(option: socket)
        return MirrorLink.Options(
            socket: socket,
            endpoints: members,
            certificates: certificates,
            bounds: bounds
        )
    }
}
