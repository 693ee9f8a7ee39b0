import Glibc
import StateTestSupport
import Testing

/// The programs where a system has nothing but them: in a root directory without /proc, and under a library that changes the
/// environment before `main`.
@Suite(.enabled(if: geteuid() == 0, "only root changes its root directory"))
struct BareSystemTests {
    @Test func `statectl reads its command line without /proc`() throws {
        let root = try BareRoot()
        let version = try root.run("statectl", "--version")
        #expect(version.exitCode == 0, "\(version)")
        #expect(version.text.hasPrefix("statectl "))
        let nobody = try root.run("statectl", "--socket", "/nobody", "get", "a")
        #expect(nobody.exitCode == 3, "\(nobody)")
        #expect(nobody.errorText.contains("/nobody"))
        let help = try root.run("statectl")
        #expect(help.exitCode == 2, "\(help)")
        #expect(help.errorText.contains("no verb"))
    }

    @Test func `stated reads its command line without /proc`() throws {
        let root = try BareRoot()
        let version = try root.run("stated", "--version")
        #expect(version.exitCode == 0, "\(version)")
        #expect(version.text.hasPrefix("stated "))
        let unknown = try root.run("stated", "--no-such-option")
        #expect(unknown.exitCode == 2, "\(unknown)")
        #expect(unknown.errorText.contains("--no-such-option"))
        // What it was not asked to serve.
        #expect(fileStatus(root.path(of: "var")) == nil)
        #expect(fileStatus(root.path(of: "run")) == nil)
    }

    @Test func `a daemon without /proc serves what its command line names`() throws {
        let root = try BareRoot()
        let rules = #"{rules: [{keys: "a/", limits: {valueBytes: 4}}]}"#
        try root.directory.write(rules, to: "rules.json5")
        let places = ["--socket", "/s", "--data", "/d", "--config", "/rules.json5"]
        let daemon = try root.start("stated", places)
        try daemon.waitForErrors(containing: " serves /s: ")
        #expect(try root.run("statectl", "--socket", "/s", "set", "a/b", "1234").exitCode == 0)
        let long = try root.run("statectl", "--socket", "/s", "set", "a/b", "12345")
        #expect(long.exitCode == 4, "\(long)")
        let value = try root.run("statectl", "--socket", "/s", "get", "a/b", "--long")
        #expect(value.text.contains("1234"), "\(value)")
        #expect(fileStatus(root.path(of: "d/stated.db")) != nil)
        daemon.send(SIGTERM)
        #expect(try daemon.end() == 0, "\(daemon.errors)")
        let check = try root.run("statectl", "check", "--data", "/d")
        #expect(check.exitCode == 0, "\(check)")
    }

    @Test(arguments: ["stated", "statectl"])
    func `a library that sets variables before main changes no argument`(name: String) throws {
        let directory = try TemporaryDirectory()
        let source = try directory.write(
            """
            #include <stdio.h>
            #include <stdlib.h>
            __attribute__((constructor)) static void change(void) {
                char name[32];
                for (int i = 0; i < 100; i++) {
                    snprintf(name, sizeof name, "PRELOADED_%d", i);
                    setenv(name, "1", 1);
                }
            }

            """,
            to: "preload.c"
        )
        let library = directory.path(of: "preload.so")
        let compiled = try runCommand("clang", ["-shared", "-fPIC", "-o", library, source])
        try #require(compiled.exitCode == 0, "\(compiled)")
        let result = try runCommand(
            builtProgram(name),
            ["--version"],
            environment: ["LD_PRELOAD": library]
        )
        #expect(result.exitCode == 0, "\(result)")
        #expect(result.text.hasPrefix("\(name) "))
    }
}

/// A root directory with the two programs, the libraries that they need, and nothing else.
private struct BareRoot {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        for name in ["stated", "statectl"] {
            let program = builtProgram(name)
            try copy(program, to: "/\(name)")
            for library in try Self.libraries(of: program) { try copy(library, to: library) }
        }
    }

    func path(of name: String) -> String { directory.path(of: name) }

    func run(_ program: String, _ arguments: String...) throws -> CommandResult {
        try runCommand("chroot", [directory.path, "/\(program)"] + arguments)
    }

    func start(_ program: String, _ arguments: [String]) throws -> Program {
        try Program(["chroot", directory.path, "/\(program)"] + arguments)
    }

    private func copy(_ file: String, to place: String) throws {
        let target = directory.path + place
        let result = try runCommand("install", ["-D", "--mode=755", file, target])
        try #require(result.exitCode == 0, "\(result)")
    }

    /// The paths that ldd(1) names; none for a program that is linked statically.
    private static func libraries(of program: String) throws -> [String] {
        try runCommand("ldd", [program]).lines.compactMap { line in
            line.split(separator: " ").map { $0.drop { $0 == "\t" } }.first { $0.hasPrefix("/") }
                .map(String.init)
        }
    }
}
