import StateEngine
import StateTestSupport
import Testing

/// How often a uid may write: three times in a second here.
struct WriteRateTests {
    private let stage: Stage

    init() throws {
        stage = try Stage()
        let quota = Quota(
            .writesPerSecond,
            3,
            rule: 0,
            isSoft: false,
            usage: KeyUsage(),
            rate: WriteRate()
        )
        try stage.install(
            rules: KeyRules(["slow/"], memoryPatterns: [], usages: [], texts: NoTexts()) { _ in
                KeyRule(KeyRule.Settings(), quotas: [quota])
            }
        )
    }

    @Test func `a commit that is refused takes nothing of what may be written`() throws {
        for _ in 0..<5 {
            let error = #expect(throws: StateError.self) {
                try stage.transact { (core) throws(StateError) in
                    for number in 0..<4 { try core.set("slow/\(number)", "1") }
                }
            }
            #expect(error?.code == .limit)
            #expect(
                error?.message.contains("3 writes per second; one commit cannot write more") == true
            )
        }
        try stage.transact { (core) throws(StateError) in
            for number in 0..<3 { try core.set("slow/\(number)", "1") }
        }
        #expect(stage.newest() == ["slow/0": "1", "slow/1": "1", "slow/2": "1"])
    }
}
