import Glibc
import StateStore

/// One pattern, as a small program.
struct Example: Sendable {
    /// What it needs besides the program.
    enum Need: Sendable {
        case nothing
        /// A `stated`, at the socket that `statectl` uses.
        case daemon
        /// A `stated`, and the same example started a second time.
        case secondProcess
    }

    let name: String
    let summary: String
    var needs = Need.nothing
    let run: @Sendable (Checks) async throws -> Void

    /// Its name and what it shows.
    var line: String {
        switch needs {
        case .nothing: "\(name): \(summary)"
        case .daemon: "\(name): \(summary) (needs a stated)"
        case .secondProcess: "\(name): \(summary) (needs a stated; start it twice)"
        }
    }
}

/// The checks of an example.
final class Checks: Sendable {
    private let failures = StateLock<[String]>([])

    /// Prints a check and whether it holds.
    func expect(_ isTrue: Bool, _ sentence: String) {
        print(isTrue ? "  holds: \(sentence)" : "  DOES NOT HOLD: \(sentence)")
        if !isTrue { failures.withLock { $0.append(sentence) } }
    }

    /// Prints whether `body` fails with this code.
    func expect(_ code: StateError.Code, _ sentence: String, of body: () throws -> Void) {
        do {
            try body()
            expect(false, sentence)
        } catch {
            expect((error as? StateError)?.code == code, sentence)
        }
    }

    var haveFailed: Bool { failures.withLock { !$0.isEmpty } }
}

/// The patterns of state containers as small programs: `Examples NAME`, `Examples` for their names,
/// `Examples all` for those that need nothing else.
@main
struct Examples {
    static let all: [Example] = [
        .appState, .listeners, .subclassPersistence, .apiResponses, .featureToggle, .caching,
        .preferences, .analytics, .protectedItems, .numbersSimple, .numbersReducer,
        .effectStyles, .whyDidItChange, .whoChangedIt, .qbChat, .sharedQBChat, .viewState,
        .aggregateRoot, .budget, .sharedBudget, .liveQuery, .validationLevels,
        .budgetEverywhere, .mainActorStore, .mainActorListener, .scopedState, .observation,
        .stateValue, .search, .childReducers, .statics, .testScope, .sections, .migrations,
        .secretState, .keptHistory, .plainWrites, .ownNames,
    ]

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard let name = arguments.first else {
            for example in all { print(example.line) }
            return
        }
        let chosen = all.filter { name == "all" ? $0.needs == .nothing : $0.name == name }
        if chosen.isEmpty {
            print("no example '\(name)'; run Examples without an argument to list them")
            exit(64)
        }
        let checks = Checks()
        for example in chosen {
            print(example.line)
            do { try await example.run(checks) } catch { checks.expect(false, "\(error)") }
        }
        exit(checks.haveFailed ? 1 : 0)
    }
}
