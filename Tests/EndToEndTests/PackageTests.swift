import Glibc
import StateClient
import StateModel
import StateTestSupport
import Testing

/// `scripts/package`, from the programs that are built already.
@Suite(.enabled(if: isInstalled("dpkg-deb"), "dpkg-deb is not installed"))
struct PackageTests {
    /// Made once for all tests, because its compression takes a processor for many seconds.
    private static let made = Result {
        let directory = try TemporaryDirectory()
        let script = try RunningCommand(
            packageRoot + "/scripts/package",
            [Array(directory.path.utf8)]
        )
        let made = try script.finish(within: .seconds(600))
        try #require(made.exitCode == 0, "\(made)")
        return (directory, made.lines.filter { $0.hasSuffix(".deb") })
    }

    /// That of the daemon, and that of the link.
    private func packages() throws -> [String] { try PackageTests.made.get().1 }
    private func package() throws -> String { try #require(try packages().first) }

    @Test func `the package has programs, units, pages, completion and a conffile, all of root`()
        throws
    {
        let (directory, package) = (try TemporaryDirectory(), try package())
        let lines = try runCommand("dpkg-deb", ["-c", package]).lines
        for path in [
            "usr/bin/stated", "usr/bin/statectl", "usr/lib/systemd/system/stated.service",
            "usr/lib/systemd/system/stated.socket",
            "usr/lib/systemd/system/stated-watch@.service", "usr/lib/sysusers.d/stated.conf",
            "usr/lib/tmpfiles.d/stated.conf", "etc/stated/stated.json5",
            "usr/share/man/man8/stated.8.gz", "usr/share/man/man1/statectl.1.gz",
            "usr/share/man/man1/statectl-backup.1.gz", "usr/share/man/man5/stated.json5.5.gz",
            "usr/share/man/man7/stated-protocol.7.gz",
            "usr/share/bash-completion/completions/statectl",
            "usr/share/zsh/vendor-completions/_statectl",
            "usr/share/fish/vendor_completions.d/statectl.fish",
            "usr/share/man/man1/statectl-check-config.1.gz",
        ] {
            let line = lines.first { $0.hasSuffix(" ./\(path)") }
            #expect(line?.contains("root/root") == true, "\(path)")
        }
        let conffiles = try runCommand("dpkg-deb", ["-I", package, "conffiles"])
        #expect(conffiles.text == "/etc/stated/stated.json5\n")
        let tree = directory.path(of: "tree")
        #expect(try runCommand("dpkg-deb", ["-x", package, tree]).exitCode == 0)
        let version = try runCommand(tree + "/usr/bin/stated", ["--version"]).text
        let form = /stated \S+ \([0-9a-f]{12}\)\n/
        #expect(version.wholeMatch(of: form) != nil, "\(version)")
        let client = try runCommand(tree + "/usr/bin/statectl", ["--version"]).text
        #expect(client == "statectl" + version.dropFirst("stated".count))
        let check = try runCommand(
            tree + "/usr/bin/stated",
            ["--check-config", tree + "/etc/stated/stated.json5"]
        )
        #expect(check.exitCode == 0, "\(check)")
    }

    @Test func `the link has a package of its own`() throws {
        let (directory, packages) = (try TemporaryDirectory(), try packages())
        let link = try #require(packages.last)
        let tree = directory.path(of: "tree")
        #expect(try runCommand("dpkg-deb", ["-x", link, tree]).exitCode == 0)
        for path in [
            "usr/lib/systemd/system/stated-etcd.service", "usr/lib/sysusers.d/stated-etcd.conf",
            "usr/share/man/man8/stated-etcd.8.gz", "usr/share/man/man5/stated-etcd.json5.5.gz",
            "usr/share/doc/stated-etcd/cluster.md",
        ] {
            #expect(access("\(tree)/\(path)", R_OK) == 0, "\(path)")
        }
        let version = try runCommand(tree + "/usr/bin/stated-etcd", ["--version"]).text
        #expect(version.hasPrefix("stated-etcd "))
        // The configuration as it comes is one, and no daemon is there.
        let file = tree + "/etc/stated-etcd/stated-etcd.json5"
        let run = try runCommand(
            "timeout",
            ["1", tree + "/usr/bin/stated-etcd", "--config", file, "--socket", "/nowhere"]
        )
        #expect(run.errorText.hasPrefix("stated-etcd: no daemon answers at /nowhere"))
        let needs = try runCommand("dpkg-deb", ["-f", link, "Depends"]).text
        #expect(needs.contains("libnghttp2-14") && needs.contains("libssl3"))
        let daemon = try runCommand("dpkg-deb", ["-f", packages[0], "Depends"]).text
        #expect(!daemon.contains("ssl"))
    }

    @Test(.enabled(if: isInstalled("lintian"), "lintian is not installed"))
    func `lintian finds no error`() throws {
        let check = try runCommand(
            "lintian",
            ["--allow-root", "--fail-on", "error"] + packages()
        )
        #expect(check.exitCode == 0, "\(check)")
    }

    // MARK: Installing

    /// Runs dpkg on a directory in place of the machine; no package asks anything there.
    private func dpkg(_ root: String, _ arguments: String...) throws -> CommandResult {
        let options = [
            "--root=\(root)", "--force-not-root", "--force-depends", "--force-script-chrootless",
            "--force-bad-path", "--log=\(root)/log",
        ]
        return try runCommand("dpkg", options + arguments, input: [])
    }

    @Test(
        .enabled(
            if: geteuid() == 0 && isInstalled("deb-systemd-helper")
                && isInstalled("systemd-sysusers"),
            "only root installs packages, with the tools of systemd"
        )
    )
    func `removing leaves data and configuration, purging removes both, and nothing asks`() throws {
        let (directory, package) = (try TemporaryDirectory(), try package())
        let root = directory.path(of: "root")
        for path in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "etc", "run"] {
            #expect(try runCommand("mkdir", ["-p", "\(root)/\(path)"]).exitCode == 0)
        }
        for file in ["status", "available"] { try write([], to: "\(root)/var/lib/dpkg/\(file)") }
        let installed = try dpkg(root, "-i", package)
        #expect(installed.exitCode == 0, "\(installed)")
        let users = String(decoding: try readFile(root + "/etc/passwd"), as: UTF8.self)
        #expect(users.contains("stated:"))
        let wanted = root + "/etc/systemd/system/sockets.target.wants/stated.socket"
        var link = stat()
        #expect(lstat(wanted, &link) == 0, "the socket is not enabled")
        #expect(try runCommand("mkdir", ["-p", root + "/var/lib/stated"]).exitCode == 0)
        try write([1], to: root + "/var/lib/stated/stated.db")
        #expect(try dpkg(root, "-i", package).exitCode == 0)
        #expect(try dpkg(root, "-r", "stated").exitCode == 0)
        #expect(access(root + "/usr/bin/stated", F_OK) != 0)
        #expect(access(root + "/var/lib/stated/stated.db", F_OK) == 0)
        #expect(access(root + "/etc/stated/stated.json5", F_OK) == 0)
        let purged = try dpkg(root, "-P", "stated")
        #expect(purged.exitCode == 0, "\(purged)")
        #expect(access(root + "/var/lib/stated", F_OK) != 0)
        #expect(access(root + "/etc/stated", F_OK) != 0)
        #expect(lstat(wanted, &link) != 0, "a link to the socket is left")
        let left = try runCommand("find", [root, "-name", "*stated*"]).lines
        #expect(left.filter { !$0.contains("/var/lib/dpkg/") } == [])
    }

    /// Runs a script of the package where systemd seems to run; returns what it asks systemd for.
    private func asked(_ script: String, _ arguments: String...) throws -> [String] {
        let directory = try TemporaryDirectory()
        let log = directory.path(of: "log")
        for name in [
            "systemctl", "deb-systemd-helper", "deb-systemd-invoke", "systemd-sysusers",
            "systemd-tmpfiles",
        ] {
            let path = try directory.write("#!/bin/sh\necho \(name) \"$@\" >>\(log)\n", to: name)
            chmod(path, 0o755)
        }
        let words = ([packageRoot + "/config/debian/" + script] + arguments).joined(separator: " ")
        let result = try runCommand(
            "unshare",
            [
                "-rm", "sh", "-c",
                "mount -t tmpfs none /run && mkdir -p /run/systemd/system && sh \(words)",
            ],
            environment: ["PATH": "\(directory.path):/usr/sbin:/usr/bin:/sbin:/bin"]
        )
        #expect(result.exitCode == 0, "\(result)")
        let text = (try? readFile(log)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    private static let mayMount =
        (try? runCommand("unshare", ["-rm", "mount", "-t", "tmpfs", "none", "/run"]))?.exitCode == 0

    @Test(.enabled(if: mayMount, "this user may not make user namespaces"))
    func `an upgrade restarts the service alone, and stops no socket`() throws {
        #expect(try asked("prerm", "upgrade", "0.2.0") == [])
        #expect(try asked("postrm", "upgrade", "0.2.0") == ["systemctl --system daemon-reload"])
        let upgrade = try asked("postinst", "configure", "0.0.9")
        let invoked = upgrade.filter { $0.hasPrefix("deb-systemd-invoke") }
        #expect(invoked == ["deb-systemd-invoke restart stated.service"], "\(upgrade)")
        let install = try asked("postinst", "configure")
        #expect(install.last == "deb-systemd-invoke start stated.socket stated.service")
        let remove = try asked("prerm", "remove")
        #expect(remove.first?.hasPrefix("deb-systemd-invoke stop stated.socket ") == true)
    }

    @Test(.enabled(if: isInstalled("shellcheck"), "shellcheck is not installed"))
    func `shellcheck finds nothing in the scripts of the package`() throws {
        let scripts = ["postinst", "prerm", "postrm"].map { "\(packageRoot)/config/debian/\($0)" }
        let result = try runCommand("shellcheck", scripts)
        #expect(result.exitCode == 0, "\(result)")
    }
}
