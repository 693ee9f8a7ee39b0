import StateContainers
import StateTesting
import Testing

struct MigrationTestTests {
    private struct Profile: Codable, Hashable, Sendable { var name = "" }

    private let codec = StateCodec<Profile>.versioned(
        3,
        migrations: [
            StateMigration(from: 1) { $0 = .object(["full": $0]) },
            StateMigration(from: 2) { value in
                guard case .object(let members) = value, let full = members["full"] else { return }
                value = .object(["name": full])
            },
        ]
    )
    private let samples = [
        1: "Ada", 2: #"{"$version":2,"full":"Ada"}"#, 3: #"{"$version":3,"name":"Ada"}"#,
    ]

    /// What the test throws where no test of Swift Testing runs: a detached task is none.
    private func failure(
        _ samples: [Int: String],
        _ isRight: @escaping @Sendable (Profile) -> Bool = { $0.name == "Ada" }
    ) async -> String? {
        let test = MigrationTest(codec, current: 3, samples: samples, isRight)
        return await Task.detached {
            do {
                try test.check()
                return nil
            } catch { return (error as? TestFailure)?.message ?? "\(error)" }
        }.value
    }

    @Test func `a codec whose migrations are right passes`() async {
        #expect(await failure(samples) == nil)
    }

    @Test func `each fault is named with its version`() async {
        var some = samples
        some[2] = nil
        #expect(await failure(some) == "there is no sample of version 2")
        some[2] = samples[3]
        #expect(await failure(some) == "the sample of version 2 is of version 3")
        some[2] = #"{"$version":2,"other":1}"#
        #expect(await failure(some)?.hasPrefix("the sample of version 2 cannot be read") == true)
        some = samples
        some[4] = "1"
        #expect(await failure(some)?.contains("version 4") == true)
        #expect(await failure(samples) { $0.name == "Grace" }?.contains("version 1 became") == true)
    }

    @Test func `a fault is an issue at the line of the check`() throws {
        let line = #line + 2
        try withKnownIssue {
            try MigrationTest(codec, current: 3, samples: [:]) { _ in true }.check()
        } matching: { issue in
            issue.sourceLocation?.line == line
                && issue.comments.map(\.rawValue) == ["there is no sample of version 1"]
        }
    }
}
