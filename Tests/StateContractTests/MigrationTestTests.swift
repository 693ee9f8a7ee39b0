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

    private func failure(
        _ samples: [Int: String],
        _ isRight: @escaping @Sendable (Profile) -> Bool = { $0.name == "Ada" }
    ) -> String? {
        do {
            try MigrationTest(codec, current: 3, samples: samples, isRight).check()
            return nil
        } catch { return "\(error)" }
    }

    @Test func `a codec whose migrations are right passes`() {
        #expect(failure(samples) == nil)
    }

    @Test func `each fault is named with its version`() {
        var some = samples
        some[2] = nil
        #expect(failure(some) == "there is no sample of version 2")
        some[2] = samples[3]
        #expect(failure(some) == "the sample of version 2 is of version 3")
        some[2] = #"{"$version":2,"other":1}"#
        #expect(failure(some)?.hasPrefix("the sample of version 2 cannot be read") == true)
        some = samples
        some[4] = "1"
        #expect(failure(some)?.contains("version 4") == true)
        #expect(failure(samples) { $0.name == "Grace" }?.contains("version 1 became") == true)
    }
}
