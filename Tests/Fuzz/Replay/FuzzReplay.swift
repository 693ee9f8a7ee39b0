import Glibc
import StateEngine
import StateFuzzTargets
import StateTestSupport

/// `fuzzreplay TARGET CORPUS COUNT SEED FILE`: reads each input of the kept corpus, and so many alterations of them.
///
/// The short form of scripts/fuzz: without libFuzzer, and so without a build of its own. FILE has the input that is read: if
/// it ends the process, `scripts/fuzz TARGET FILE` runs it again.
@main
enum FuzzReplay {
    static func main() throws {
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let target = FuzzTarget(rawValue: arguments[1]),
            let count = Int(arguments[3]), let seed = UInt64(arguments[4])
        else {
            print("usage: fuzzreplay \(FuzzTarget.allCases.map(\.rawValue)) CORPUS COUNT SEED FILE")
            exit(2)
        }
        let corpus = try inputs(in: arguments[2])
        let file = open(arguments[5], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemFailure(call: "open", errno) }
        func run(_ input: [UInt8]) {
            ftruncate(file, 0)
            pwrite(file, input, input.count, 0)
            // What takes longer ends the process, as with libFuzzer.
            alarm(25)
            input.withUnsafeBytes { target.run($0) }
        }
        for input in corpus { run(input) }
        var random = SplitMix(seed: seed)
        for _ in 0..<count {
            var input = corpus[Int.random(in: 0..<corpus.count, using: &random)]
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                alter(&input, with: corpus, &random)
            }
            run(input)
        }
        print("\(corpus.count) inputs and \(count) alterations")
    }

    /// The files of a directory, in order of their names.
    private static func inputs(in directory: String) throws -> [[UInt8]] {
        guard let stream = opendir(directory) else { throw SystemFailure(call: "opendir", errno) }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        guard !names.isEmpty else { throw SystemFailure("\(directory) has no input") }
        return try names.sorted().map { try readFile(directory + "/" + $0) }
    }

    /// Changes, removes, repeats or inserts some bytes.
    private static func alter(
        _ input: inout [UInt8],
        with corpus: [[UInt8]],
        _ random: inout SplitMix
    ) {
        func place(_ count: Int) -> Int { Int.random(in: 0...count, using: &random) }
        let start = place(input.count)
        let end = min(input.count, start + place(8))
        switch Int.random(in: 0..<6, using: &random) {
        case 0 where start < input.count: input[start] ^= 1 << UInt8(place(7))
        case 1 where start < input.count: input[start] = UInt8(place(255))
        case 2: input.removeSubrange(start..<end)
        case 3: input.insert(contentsOf: input[start..<end], at: place(input.count))
        case 4: input.insert(contentsOf: (0..<place(4)).map { _ in UInt8(place(255)) }, at: start)
        default:
            let other = corpus[Int.random(in: 0..<corpus.count, using: &random)]
            let from = place(other.count)
            let piece = other[from..<min(other.count, from + place(60))]
            input.replaceSubrange(start..<end, with: piece)
        }
    }
}
