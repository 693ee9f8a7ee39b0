import Glibc
import StateTestSupport
import Testing

/// The checks of `scripts/endure` that are programs of their own, with small numbers and without limits of time.
struct LongCheckTests {
    @Test(arguments: [
        "due --keys 3000 --rounds 1 --ratio 0 --told 0",
        "renewals --count 30000",
        "lifetimes --count 60 --rounds 1 --limit 0",
        "tracking --operations 12000 --keys 200 --table 100",
        "backup --keys 9000 --rounds 1 --writers 8 --readers 2 --quiet 200 --flips 60 --ratio 0",
    ]) func `a long check holds with small numbers`(line: String) throws {
        let directory = try TemporaryDirectory()
        // Other users connect to sockets in it.
        chmod(directory.path, 0o711)
        let words = line.split(separator: " ").map(String.init) + ["--directory", directory.path]
        let result = try runCommand(builtProgram("longchecks"), words)
        #expect(result.exitCode == 0 && result.text.contains(": "), "\(result)")
    }
}
