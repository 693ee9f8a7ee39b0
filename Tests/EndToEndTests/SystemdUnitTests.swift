import Glibc
import StateTestSupport
import Testing

/// The unit files: what systemd itself says of them.
struct SystemdUnitTests {
    private let scratch: TemporaryDirectory
    private let units = packageRoot + "/config/systemd"

    init() throws { scratch = try TemporaryDirectory() }

    /// Copies of the units of `kind`, which start what was built here.
    private func runnableUnits(_ kind: String) throws -> [String] {
        let others = [
            "stated-backup@daily.service", "stated-backup@daily.timer", "stated-metrics.socket",
            "stated-metrics@.service", "stated-watch@daily.service", "stated-credentials.socket",
            "stated-credentials@.service", "stated-early.socket", "stated-early.service",
            "stated-early-end.service",
        ]
        let names = ["stated.socket", "stated.service"] + (kind == "system" ? others : [])
        return try names.map { name in
            // An instance is made of its template.
            let file = name.split(separator: "daily").joined()
            let text = String(decoding: try readFile("\(units)/\(kind)/\(file)"), as: UTF8.self)
            let copy = ["stated", "statectl"].reduce(text) { text, name in
                text.split(separator: "/usr/bin/\(name)", omittingEmptySubsequences: false)
                    .joined(separator: builtProgram(name))
            }
            try write(Array(copy.utf8), to: scratch.path(of: name))
            return scratch.path(of: name)
        }
    }

    @Test func `systemd-analyze verify has nothing to say of the system units`() throws {
        let program = try Program(["systemd-analyze", "verify"] + runnableUnits("system"))
        #expect(try program.end() == 0)
        #expect(program.output + program.errors == "")
    }

    @Test func `systemd-analyze verify has nothing to say of the link's unit`() throws {
        let text = String(
            decoding: try readFile(packageRoot + "/config/etcd/stated-etcd.service"),
            as: UTF8.self
        )
        let parts = text.split(separator: "/usr/bin/stated-etcd", omittingEmptySubsequences: false)
        let copy = parts.joined(separator: builtProgram("stated-etcd"))
        try write(Array(copy.utf8), to: scratch.path(of: "stated-etcd.service"))
        let paths = try runnableUnits("system") + [scratch.path(of: "stated-etcd.service")]
        let program = try Program(["systemd-analyze", "--man=no", "verify"] + paths)
        #expect(try program.end() == 0)
        #expect(program.output + program.errors == "")
    }

    @Test func `systemd-analyze verify has nothing to say of the user units`() throws {
        let runtime = scratch.path(of: "runtime")
        try #require(mkdir(runtime, 0o700) == 0)
        let program = try Program(
            ["systemd-analyze", "--user", "verify"] + runnableUnits("user"),
            environment: ["XDG_RUNTIME_DIR": runtime, "HOME": scratch.path]
        )
        #expect(try program.end() == 0)
        #expect(program.output + program.errors == "")
    }

    @Test func `verify does complain of a unit that is wrong`() throws {
        let paths = try runnableUnits("system")
        let service = try readFile(paths[1]) + Array("\n[Service]\nRestrat=always\n".utf8)
        try write(service, to: paths[1])
        let program = try Program(["systemd-analyze", "verify"] + paths)
        _ = try program.end()
        #expect(program.errors.contains("Restrat"))
    }

    @Test func `the exposure level of the service is 1.0 or better`() throws {
        let program = try Program([
            "systemd-analyze", "--no-pager", "security", "--offline=true",
            units + "/system/stated.service",
        ])
        #expect(try program.end() == 0)
        let line = program.output.split(separator: "\n").last { $0.contains("exposure level") }
        let words = try #require(line, "\(program.output)\(program.errors)").split(separator: " ")
        let level = try #require(words.lazy.compactMap { Double($0) }.first)
        #expect(level <= 1.0)
    }

    @Test(arguments: ["PrivateUsers", "ProtectProc", "ProcSubset", "RuntimeDirectory"])
    func `nothing hides who a peer is, or deletes the socket`(setting: String) throws {
        let service = try readFile(units + "/system/stated.service")
        let lines = String(decoding: service, as: UTF8.self).split(separator: "\n")
        #expect(lines.contains("ExecStart=/usr/bin/stated --adopt /run/stated-early"))
        // A client of its own, which waits for the outcome and fails where the daemon refuses the file.
        #expect(
            lines.contains {
                $0.hasPrefix("ExecReload=/usr/bin/statectl ") && $0.hasSuffix(" reload")
            }
        )
        #expect(!lines.contains { $0.hasPrefix(setting) })
    }

    @Test func `the service cannot change its own configuration`() throws {
        let service = try readFile(units + "/system/stated.service")
        let lines = String(decoding: service, as: UTF8.self).split(separator: "\n")
        #expect(!lines.contains { $0.hasPrefix("ConfigurationDirectory") })
        let places = lines.filter { $0.hasPrefix("ReadWritePaths") }
        #expect(places == ["ReadWritePaths=-/run/stated-early"])
        #expect(lines.contains("ReadOnlyPaths=-/etc/stated"))
        #expect(lines.contains("ProtectSystem=strict"))
        #expect(lines.contains("Environment=CONFIGURATION_DIRECTORY=/etc/stated"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `the user, its group and the directories of socket and configuration are made`() throws {
        // As ConfigurationDirectory of a former unit has left it.
        try #require(mkdir(scratch.path(of: "etc"), 0o755) == 0)
        try #require(mkdir(scratch.path(of: "etc/stated"), 0o777) == 0)
        try #require(chown(scratch.path(of: "etc/stated"), 12_345, 12_345) == 0)
        let users = try Program([
            "systemd-sysusers", "--root=" + scratch.path, units + "/sysusers.d/stated.conf",
        ])
        #expect(try users.end() == 0, "\(users.errors)")
        let files = try Program([
            "systemd-tmpfiles", "--create", "--root=" + scratch.path,
            units + "/tmpfiles.d/stated.conf",
        ])
        #expect(try files.end() == 0, "\(files.errors)")
        let groups = String(decoding: try readFile(scratch.path(of: "etc/group")), as: UTF8.self)
        let group = try #require(groups.split(separator: "\n").first { $0.hasPrefix("stated:") })
        let directory = try #require(fileStatus(scratch.path(of: "run/stated")))
        #expect(directory.st_mode == S_IFDIR | 0o750)
        #expect(directory.st_uid == 0)
        #expect(group.split(separator: ":").contains("\(directory.st_gid)"))
        let configuration = try #require(fileStatus(scratch.path(of: "etc/stated")))
        #expect(configuration.st_mode == S_IFDIR | 0o755)
        #expect(configuration.st_uid == 0 && configuration.st_gid == 0)
    }
}
