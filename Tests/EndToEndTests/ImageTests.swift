import Glibc
import StateModel
import StateTestSupport
import Testing

/// `scripts/package --oci`, from the programs that are built already.
struct ImageTests {
    /// How a program gets another root directory: as the user of the image, or in a user namespace.
    private static let changingRoot =
        geteuid() == 0 ? ["chroot", "--userspec=65532:65532"] : ["unshare", "-r", "chroot"]
    static let mayChangeRoot =
        (try? runCommand(changingRoot[0], changingRoot.dropFirst() + ["/", "true"]))?.exitCode == 0

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let made = try runCommand(packageRoot + "/scripts/package", ["--oci", directory.path])
        try #require(made.exitCode == 0, "\(made)")
        let image = try #require(made.lines.last)
        try run("mkdir", layout, root)
        try run("tar", "-xf", image, "-C", layout)
    }

    private var layout: String { directory.path(of: "layout") }
    private var root: String { directory.path(of: "root") }
    @discardableResult private func run(_ program: String, _ arguments: String...) throws -> String
    {
        let result = try runCommand(program, arguments)
        try #require(result.exitCode == 0, "\(program) \(arguments): \(result)")
        return result.text
    }

    private func text(_ path: String) throws -> String {
        String(decoding: try readFile(layout + "/" + path), as: UTF8.self)
    }

    /// The digests and sizes that a document names, in its order.
    private func named(in text: String) -> [(digest: String, size: Int)] {
        text.matches(of: /"digest": "sha256:([0-9a-f]{64})", "size": (\d+)/)
            .map { (String($0.1), Int($0.2) ?? -1) }
    }

    private func unpack() throws -> String {
        let manifest = try #require(named(in: try text("index.json")).first).digest
        let layer = try #require(named(in: try text("blobs/sha256/\(manifest)")).last).digest
        try run("tar", "-xzf", "\(layout)/blobs/sha256/\(layer)", "-C", root)
        return layer
    }

    @Test func `each digest and size of the layout is right, and nothing else is in it`() throws {
        #expect(try text("oci-layout") == "{ \"imageLayoutVersion\": \"1.0.0\" }\n")
        let manifests = named(in: try text("index.json"))
        try #require(manifests.count == 1)
        let rest = named(in: try text("blobs/sha256/\(manifests[0].digest)"))
        try #require(rest.count == 2)
        for (digest, size) in manifests + rest {
            let path = "\(layout)/blobs/sha256/\(digest)"
            #expect(try run("sha256sum", path).hasPrefix(digest + " "))
            #expect(try readFile(path).count == size)
        }
        let names = try run("ls", "\(layout)/blobs/sha256").split(separator: "\n").map(String.init)
        #expect(Set(names) == Set((manifests + rest).map(\.digest)))
        // The configuration has the digest of the layer as it is unpacked.
        let configuration = try text("blobs/sha256/\(rest[0].digest)")
        let layer = "\(layout)/blobs/sha256/\(rest[1].digest)"
        let unpacked = try run("sh", "-c", "gzip -dc \(layer) | sha256sum").prefix(64)
        #expect(configuration.contains("\"diff_ids\": [\"sha256:\(unpacked)\"]"))
        for path in ["index.json", "blobs/sha256/\(manifests[0].digest)"] {
            try run("python3", "-m", "json.tool", "\(layout)/\(path)")
        }
    }

    @Test func `what the daemon writes to is its own, and all else is root's`() throws {
        let layer = try unpack()
        let lines = try run("tar", "--numeric-owner", "-tvzf", "\(layout)/blobs/sha256/\(layer)")
            .split(separator: "\n")
        let own = lines.filter { $0.contains(" 65532/65532 ") }.compactMap {
            $0.split(separator: " ").last
        }
        #expect(Set(own) == ["./var/lib/stated/", "./run/stated/"])
        #expect(lines.filter { !$0.contains(" 65532/65532 ") }.allSatisfy { $0.contains(" 0/0 ") })
    }

    @Test(.enabled(if: mayChangeRoot, "this user may not make user namespaces"))
    func `the daemon starts in it, and sets and gets a key`() throws {
        _ = try unpack()
        let daemon = try RunningCommand(
            Self.changingRoot[0],
            (Self.changingRoot.dropFirst() + [
                root, "/usr/bin/stated", "--config", "/etc/stated/stated.json5", "--socket",
                "/run/stated/stated.sock", "--data", "/var/lib/stated",
            ]).map { Array($0.utf8) }
        )
        defer { daemon.signal(SIGTERM) }
        func statectl(_ words: String...) throws -> CommandResult {
            try runCommand(
                Self.changingRoot[0],
                Self.changingRoot.dropFirst() + [root, "/usr/bin/statectl"] + words
            )
        }
        let waited = try statectl("wait", "a", "--absent", "--for-daemon", "--timeout", "60s")
        #expect(waited.exitCode == 0, "\(waited)")
        #expect(try statectl("set", "a", "1").exitCode == 0)
        #expect(try statectl("get", "a").text == "1\n")
        #expect(
            try statectl("--version").text.wholeMatch(of: /statectl \S+ \([0-9a-f]{12}\)\n/) != nil
        )
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().exitCode == 0)
    }
}
