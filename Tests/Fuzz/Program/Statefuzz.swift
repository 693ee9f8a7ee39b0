import CFuzzer
import Glibc
import StateEngine
import StateFuzzTargets

/// Inputs of libFuzzer's making for everything that reads bytes of others; scripts/fuzz builds and runs it.
///
/// The environment's STATED_FUZZ_TARGET names what is fuzzed, for libFuzzer starts this program again with arguments of its
/// own. A target ends the process where something is wrong: a trap, a precondition, or what libFuzzer limits.
@main
enum Statefuzz {
    private static let target: FuzzTarget = {
        let name = getenv("STATED_FUZZ_TARGET").map { String(cString: $0) } ?? ""
        guard let target = FuzzTarget(rawValue: name) else {
            fatalError("STATED_FUZZ_TARGET is '\(name)', not one of \(FuzzTarget.allCases)")
        }
        return target
    }()

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        var argumentCount = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(
            LLVMFuzzerRunDriver(&argumentCount, &arguments) { bytes, count in
                Statefuzz.target.run(Bytes(start: bytes, count: count))
                return 0
            }
        )
    }
}
