/// Two states side by side, of which it is always known where they differ.
struct StateComparison {
    typealias Entry = CommitRecord.Entry

    private var expected: [String: Entry]
    private var told: [String: Entry]
    private var differing: Set<String> = []

    /// Begins with a state that both have.
    init(_ state: [String: Entry]) { (expected, told) = (state, state) }

    /// Begins with a state as it is and as it was told, piece by piece.
    init(_ expected: [String: Entry], told pieces: [WatchSession.Piece]) {
        self.expected = expected
        told = [:]
        differing = Set(expected.keys)
        for piece in pieces { tell(piece.key, piece.value, piece.revision) }
    }

    mutating func expect(_ key: String, _ value: String?, _ revision: Int64) {
        expected[key] = value.map { Entry(value: $0, revision: revision) }
        compare(key)
    }

    mutating func tell(_ key: String, _ value: String?, _ revision: Int64) {
        told[key] = value.map { Entry(value: $0, revision: revision) }
        compare(key)
    }

    private mutating func compare(_ key: String) {
        if expected[key] == told[key] { differing.remove(key) } else { differing.insert(key) }
    }

    /// Where they differ, in words; nil where they do not.
    var difference: String? {
        guard let key = differing.min() else { return nil }
        func shown(_ entry: Entry?) -> String {
            entry.map { "'\($0.value)' of \($0.revision)" } ?? "absent"
        }
        let more = differing.count > 1 ? ", and \(differing.count - 1) keys more" : ""
        return "'\(key)' is \(shown(expected[key])), told was \(shown(told[key]))\(more)"
    }

    /// Takes what is for what was told, so that a difference is named once.
    mutating func forgive() {
        told = expected
        differing = []
    }
}
