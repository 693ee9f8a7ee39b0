import Glibc
import StateClient
import StateModel
import StateTestSupport
import Testing

/// `scripts/package`, from the programs that are built already.
@Suite(.enabled(if: access("/usr/bin/dpkg-deb", X_OK) == 0, "dpkg-deb is not installed"))
struct PackageTests {
    private func made() throws -> (directory: TemporaryDirectory, package: String) {
        let directory = try TemporaryDirectory()
        let made = try runCommand(packageRoot + "/scripts/package", [directory.path])
        try #require(made.exitCode == 0, "\(made)")
        let package = try #require(made.lines.first { $0.hasSuffix(".deb") })
        return (directory, package)
    }

    @Test func `the package has programs, units, pages, completion and a conffile, all of root`()
        throws
    {
        let (directory, package) = try made()
        let lines = try runCommand("/usr/bin/dpkg-deb", ["-c", package]).lines
        for path in [
            "usr/bin/stated", "usr/bin/statectl", "usr/lib/systemd/system/stated.service",
            "usr/lib/systemd/system/stated.socket", "usr/lib/sysusers.d/stated.conf",
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
        let conffiles = try runCommand("/usr/bin/dpkg-deb", ["-I", package, "conffiles"])
        #expect(conffiles.text == "/etc/stated/stated.json5\n")
        let tree = directory.path(of: "tree")
        #expect(try runCommand("/usr/bin/dpkg-deb", ["-x", package, tree]).exitCode == 0)
        let version = try runCommand(tree + "/usr/bin/stated", ["--version"]).text
        #expect(version.hasPrefix("stated "))
        let check = try runCommand(
            tree + "/usr/bin/stated",
            ["--check-config", tree + "/etc/stated/stated.json5"]
        )
        #expect(check.exitCode == 0, "\(check)")
    }

    @Test(.enabled(if: access("/usr/bin/lintian", X_OK) == 0, "lintian is not installed"))
    func `lintian finds no error`() throws {
        let (directory, package) = try made()
        defer { withExtendedLifetime(directory) {} }
        let check = try runCommand(
            "/usr/bin/lintian",
            ["--allow-root", "--fail-on", "error", package]
        )
        #expect(check.exitCode == 0, "\(check)")
    }
}
