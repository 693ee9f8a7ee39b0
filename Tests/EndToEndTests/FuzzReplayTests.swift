import StateTestSupport
import Testing

/// The short form of scripts/fuzz; `STATED_FUZZ_ROUNDS` says how many times as much.
@Suite(.serialized) struct FuzzReplayTests {
    /// How many alterations of the kept inputs, of which a second has about so many.
    private static let counts: KeyValuePairs = [
        "frames": 20_000, "server": 200, "configuration": 2_000, "patterns": 2_000, "store": 100,
        "files": 500, "log": 2_000,
    ]

    @Test(arguments: counts.map(\.key))
    func `what others send and store, and random changes of it, ends no reader`(
        target: String
    ) throws {
        let count = try #require(Self.counts.first { $0.key == target }?.value)
        let directory = try TemporaryDirectory()
        let input = directory.path(of: "input")
        let rounds = Extent.named("STATED_FUZZ_ROUNDS", short: 1)
        let result = try runCommand(
            builtProgram("fuzzreplay"),
            [
                target, packageRoot + "/Tests/Fuzz/Corpus/\(target)", "\(count * rounds)",
                "\(Seed.base)", input,
            ]
        )
        let last = try readFile(input)
        #expect(
            result.exitCode == 0 && result.text.contains("\(count * rounds) alterations"),
            "seed \(Seed.base), input \(last): \(result.errorText.prefix(2_000))"
        )
    }
}
