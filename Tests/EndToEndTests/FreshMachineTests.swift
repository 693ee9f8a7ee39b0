import Glibc
import StateTestSupport
import Testing

/// `scripts/fresh-machine`, as far as it goes without a mirror of Debian; `.ci/run` uses all of it.
struct FreshMachineTests {
    private func run(_ arguments: String..., isRoot: Bool) throws -> CommandResult {
        let words = [packageRoot + "/scripts/fresh-machine"] + arguments
        guard !isRoot, geteuid() == 0 else {
            return try runCommand(words[0], Array(words[1...]))
        }
        return try runCommand("unshare", ["--user", "--map-user=1000"] + words)
    }

    @Test func `who is not root learns that a fresh machine needs root`() throws {
        let reason = try run("--why-not", isRoot: false)
        #expect(reason.exitCode == 0 && reason.text == "it needs root\n", "\(reason)")
        let refused = try run(isRoot: false)
        #expect(refused.exitCode == 1)
        #expect(refused.errorText.hasSuffix("no such machine can be made here: it needs root\n"))
    }

    @Test func `a word that is not an option makes no machine`() throws {
        for words in ["--why", "test", "--"] {
            let result = try run(words, isRoot: true)
            #expect(result.exitCode != 0 && result.text.isEmpty && !result.error.isEmpty)
        }
    }
}
