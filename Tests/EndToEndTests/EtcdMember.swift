import Glibc
import StateEngine
import StateTestSupport

/// A cluster of one etcd, with data and ports of its own.
///
/// One thread at a time.
final class EtcdMember {
    let directory: TemporaryDirectory
    let client: UInt16
    private let peer: UInt16
    private let security: [String]
    private let name: String
    /// All members, as `--initial-cluster` has them.
    private var cluster: String
    private let quotaByteCount: Int?
    private(set) var pid: pid_t = 0

    /// The client's address.
    var url: String { "\(security.isEmpty ? "http" : "https")://127.0.0.1:\(client)" }

    /// Starts it, and waits until it serves.
    ///
    /// - Parameters:
    ///   - certificates: The directory of `ca.pem`, `node.pem` and `node-key.pem`, which it
    ///     and its clients need.
    ///   - quotaByteCount: How large its database may become.
    /// - Throws: ``SystemFailure`` if it does not serve in time.
    init(certificates: String? = nil, quotaByteCount: Int? = nil) throws {
        self.quotaByteCount = quotaByteCount
        directory = try TemporaryDirectory()
        let ports = try EtcdMember.freePorts(2)
        (client, peer, name) = (ports[0], ports[1], "m1")
        cluster = "m1=http://127.0.0.1:\(peer)"
        security =
            certificates.map {
                ["--cacert=\($0)/ca.pem", "--cert=\($0)/node.pem", "--key=\($0)/node-key.pem"]
            } ?? []
        try start()
    }

    /// One of several.
    private init(_ name: String) throws {
        directory = try TemporaryDirectory()
        let ports = try EtcdMember.freePorts(2)
        (client, peer, self.name) = (ports[0], ports[1], name)
        (security, cluster, quotaByteCount) = ([], "", nil)
    }

    /// Starts a cluster of several members, and waits until each serves.
    static func cluster(of count: Int) throws -> [EtcdMember] {
        let members = try (1...count).map { try EtcdMember("m\($0)") }
        let cluster = members.map { "\($0.name)=\($0.peerURL)" }.joined(separator: ",")
        for member in members {
            member.cluster = cluster
            try member.launch()
        }
        for member in members { try member.waitUntilItServes() }
        return members
    }

    deinit { kill() }

    /// Numbers that were free a moment ago.
    static func freePorts(_ count: Int) throws -> [UInt16] {
        var (descriptors, ports): ([Int32], [UInt16]) = ([], [])
        defer { for descriptor in descriptors { close(descriptor) } }
        for _ in 0..<count {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            descriptors.append(descriptor)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, size) == 0 ? getsockname(descriptor, $0, &size) : -1
                }
            }
            guard status == 0 else { throw SystemFailure(call: "bind", errno) }
            ports.append(UInt16(bigEndian: address.sin_port))
        }
        return ports
    }

    func start() throws {
        try launch()
        try waitUntilItServes()
    }

    private func launch() throws {
        var arguments = [
            "--name", name, "--data-dir", directory.path(of: "etcd"),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
            "--initial-cluster", cluster, "--pre-vote", "--log-level", "error",
        ]
        if let quotaByteCount { arguments += ["--quota-backend-bytes", "\(quotaByteCount)"] }
        if !security.isEmpty {
            let files = security.map { String($0.drop { $0 != "=" }.dropFirst()) }
            arguments += ["--trusted-ca-file", files[0], "--cert-file", files[1]]
            arguments += ["--key-file", files[2], "--client-cert-auth"]
        }
        let log = open(directory.path(of: "log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer {
            close(log)
            close(null)
        }
        pid = try spawn(
            "etcd",
            arguments.map { Array($0.utf8) },
            [:],
            descriptors: [null, log, log]
        )
    }

    private func waitUntilItServes() throws {
        guard try eventually({ try control("endpoint", "health").exitCode == 0 }) else {
            throw SystemFailure("etcd does not serve: \(try readFile(directory.path(of: "log")))")
        }
    }

    private var peerURL: String { "http://127.0.0.1:\(peer)" }

    /// Ends it at once.
    func kill() {
        guard pid > 0 else { return }
        Glibc.kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        pid = 0
    }

    func pause() { Glibc.kill(pid, SIGSTOP) }
    func goOn() { Glibc.kill(pid, SIGCONT) }

    // MARK: etcdctl

    /// Runs `etcdctl`.
    @discardableResult
    func control(_ arguments: String..., input: String = "") throws -> CommandResult {
        try runCommand(
            "etcdctl",
            ["--endpoints", url, "--command-timeout=2s"] + security + arguments,
            input: Array(input.utf8),
            environment: ["ETCDCTL_API": "3"]
        )
    }

    /// Sets keys in one transaction.
    func put(_ pairs: [(String, String)]) throws {
        let lines = pairs.map { "put \($0) \($1)\n" }.joined()
        let result = try control("txn", input: "\n\(lines)\n\n")
        guard result.text.hasPrefix("SUCCESS") else { throw SystemFailure("txn: \(result)") }
    }

    /// Its revision now.
    func revision() throws -> Int64 {
        let text = try control("get", "none", "-w", "fields").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("\"Revision\"") }
        return line.flatMap { Int64($0.split(separator: " ").last ?? "") } ?? -1
    }

    /// The values of a prefix, without the link's own keys.
    func values(_ prefix: String) throws -> [String: String] {
        let lines = try control("get", prefix, "--prefix").text.split(separator: "\n")
        var values: [String: String] = [:]
        for index in stride(from: 0, to: lines.count - 1, by: 2)
        where !lines[index].hasPrefix("\(prefix).stated/") {
            values[String(lines[index])] = String(lines[index + 1])
        }
        return values
    }

    /// Replaces its data by that of a snapshot that `control("snapshot", "save", …)` has made.
    func restore(_ snapshot: String) throws {
        kill()
        let data = directory.path(of: "etcd")
        let result = try runCommand(
            "bash",
            [
                "-c",
                """
                rm -r \(data) && ETCDCTL_API=3 etcdctl snapshot restore \(snapshot) --name m1 \
                --data-dir \(data) --initial-cluster m1=\(peerURL) \
                --initial-advertise-peer-urls \(peerURL)
                """,
            ]
        )
        guard result.exitCode == 0 else { throw SystemFailure("restore: \(result)") }
        try start()
    }
}
