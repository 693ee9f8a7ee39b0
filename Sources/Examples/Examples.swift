import Glibc
import StateStore

/// One pattern of the literature, shown at work.
struct Example: Sendable {
    let name: String
    let summary: String
    let run: @Sendable (Checks) async throws -> Void
}

/// What an example holds true of itself.
final class Checks: Sendable {
    private let failures = StateLock<[String]>([])

    /// Prints what is shown, and whether it holds.
    func expect(_ isTrue: Bool, _ sentence: String) {
        print(isTrue ? "  holds: \(sentence)" : "  DOES NOT HOLD: \(sentence)")
        if !isTrue { failures.withLock { $0.append(sentence) } }
    }

    var haveFailed: Bool { failures.withLock { !$0.isEmpty } }
}

/// The patterns of state containers as small programs: `Examples NAME`, `Examples all`, `Examples` for their names.
@main
struct Examples {
    static let all: [Example] = [
        .numbersSimple, .numbersReducer, .effectStyles, .whyDidItChange, .qbChat, .viewState,
        .aggregateRoot,
    ]

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard let name = arguments.first else {
            for example in all { print("\(example.name): \(example.summary)") }
            return
        }
        let chosen = name == "all" ? all : all.filter { $0.name == name }
        if chosen.isEmpty {
            print("no example '\(name)'; without an argument their names are listed")
            exit(64)
        }
        let checks = Checks()
        for example in chosen {
            print("\(example.name): \(example.summary)")
            do { try await example.run(checks) } catch { checks.expect(false, "\(error)") }
        }
        exit(checks.haveFailed ? 1 : 0)
    }
}
