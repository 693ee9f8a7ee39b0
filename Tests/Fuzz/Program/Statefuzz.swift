import CFuzzer
import Glibc
import StateEngine

/// Inputs of libFuzzer's making for everything that reads bytes of others; scripts/fuzz builds and runs it.
///
/// The environment's STATED_FUZZ_TARGET names what is fuzzed, for libFuzzer starts this program again with arguments of its
/// own. A target ends the process where something is wrong: a trap, a precondition, or what libFuzzer limits.
@main
enum Statefuzz {
    private static let targets: [String: @Sendable (Bytes) throws -> Void] = [
        "frames": FrameTarget.run,
        "server": ServerTarget.run,
        "configuration": ConfigurationTarget.run,
        "patterns": PatternTarget.run,
        "store": StoreTarget.run,
        "files": FilesTarget.run,
    ]

    private static let target: @Sendable (Bytes) throws -> Void = {
        let name = getenv("STATED_FUZZ_TARGET").map { String(cString: $0) } ?? ""
        guard let target = targets[name] else {
            fatalError("STATED_FUZZ_TARGET is '\(name)', not one of \(targets.keys.sorted())")
        }
        return target
    }()

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        var argumentCount = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(
            LLVMFuzzerRunDriver(&argumentCount, &arguments) { bytes, count in
                Statefuzz.run(Bytes(start: bytes, count: count))
                return 0
            }
        )
    }

    private static func run(_ input: Bytes) {
        do {
            try target(input)
        } catch {
            fatalError("\(error)")
        }
    }
}

/// Ends the process where `condition` does not hold; `precondition` of an optimised build would not say why.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    guard !condition else { return }
    fatalError(message())
}

/// Hands `stream` out in pieces, whose lengths depend on `seed`: many of few bytes, some of many.
func cut(_ stream: Bytes, seed: UInt8, _ body: (Bytes) throws -> Void) rethrows {
    var state = UInt32(seed) &* 2_654_435_761 | 1
    var start = 0
    while start < stream.count {
        state = state &* 1_664_525 &+ 1_013_904_223
        let length = 1 + Int(state >> 16) % (state >> 30 == 0 ? 200 : 7)
        let end = min(stream.count, start + length)
        try body(stream.slice(start, end))
        start = end
    }
}
