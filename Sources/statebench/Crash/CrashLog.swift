/// The log of the writers, from one round to the next.
///
/// ```
/// revision 8812               the highest acknowledged revision
/// writer 3 4711               a writer, and the last stamp that it used
/// key crash/3/set/17 4702 8790   the last acknowledged write of a key, and its revision if known
/// gone crash/3/set/18 4699    the same for a delete
/// sent 3 4712 mset 2          sent and not answered, in the order of sending
/// ```
struct CrashLog {
    /// The expected state of a key, if no unanswered write was made.
    struct KeyState: Equatable {
        var stamp: Int
        var isDeleted: Bool
        /// 0 if unknown.
        var revision = 0
    }

    struct Writer {
        /// The stamp of the last acknowledged write, or of a later one whose outcome is known.
        var stamp = 0
        var keys: [String: KeyState] = [:]
        var unanswered: [CrashWrite] = []

        /// Records that `write` was made.
        mutating func settle(_ write: CrashWrite, number: Int, revision: Int = 0) {
            for key in write.keys(writer: number) {
                keys[key] = KeyState(
                    stamp: write.stamp,
                    isDeleted: write.kind == .delete,
                    revision: revision
                )
            }
            stamp = write.stamp
        }
    }

    var revision = 0
    var writers: [Writer]

    init(writerCount: Int) { writers = Array(repeating: Writer(), count: writerCount) }

    /// Parses the format of ``text``.
    init(_ text: String) throws(BenchError) {
        self.init(writerCount: 0)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard read(words) else { throw .failed("unexpected line '\(line)' in the log") }
        }
    }

    private mutating func read(_ words: [String]) -> Bool {
        let numbers = words.map { Int($0) ?? -1 }
        switch (words.first, words.count) {
        case ("revision", 2): revision = numbers[1]
        case ("writer", 3):
            guard numbers[1] == writers.count else { return false }
            writers.append(Writer(stamp: numbers[2]))
        case ("key", 4), ("gone", 3):
            guard let last = writers.indices.last else { return false }
            writers[last].keys[words[1]] = KeyState(
                stamp: numbers[2],
                isDeleted: words[0] == "gone",
                revision: words.count == 4 ? numbers[3] : 0
            )
        case ("sent", 5):
            guard let kind = CrashWrite.Kind(rawValue: words[3]),
                writers.indices.contains(numbers[1])
            else { return false }
            let write = CrashWrite(stamp: numbers[2], kind: kind, index: numbers[4])
            writers[numbers[1]].unanswered.append(write)
        default: return false
        }
        return true
    }

    var text: String {
        var lines = ["revision \(revision)"]
        for (number, writer) in writers.enumerated() {
            lines.append("writer \(number) \(writer.stamp)")
            for (key, state) in writer.keys.sorted(by: { $0.key < $1.key }) {
                lines.append(
                    state.isDeleted
                        ? "gone \(key) \(state.stamp)"
                        : "key \(key) \(state.stamp) \(state.revision)"
                )
            }
            for write in writer.unanswered {
                lines.append("sent \(number) \(write.stamp) \(write.kind.rawValue) \(write.index)")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
