/// What was found in the states of recordings.
struct Findings {
    var recordingCount = 0
    var eventCount = 0
    var commitCount = 0
    var stateCount = 0
    var secondCrashCount = 0
    var differences: [(difference: Difference, state: String)] = []

    mutating func add(_ other: Findings) {
        recordingCount += other.recordingCount
        eventCount += other.eventCount
        commitCount += other.commitCount
        stateCount += other.stateCount
        secondCrashCount += other.secondCrashCount
        differences += other.differences
    }

    var counts: String {
        "\(eventCount) file operations, \(commitCount) transactions, \(stateCount) states "
            + "(\(secondCrashCount) crashed twice), \(differences.count) differences"
    }

    /// For a person: each difference with its state, and how many of each kind.
    var summary: String {
        var lines: [String] = []
        for (difference, state) in differences {
            lines.append("\(difference.kind): \(difference.text)\n    \(state)")
        }
        lines.append("\(recordingCount) recordings: \(counts)")
        for kind in Difference.Kind.allCases {
            let count = differences.count { $0.difference.kind == kind }
            if count > 0 { lines.append("  \(count) \(kind): \(kind.rawValue)") }
        }
        return lines.joined(separator: "\n")
    }

    // MARK: From one process to another

    /// Counts in the first line, then three lines for each difference.
    var text: String {
        let counts = [recordingCount, eventCount, commitCount, stateCount, secondCrashCount]
        let lines = differences.flatMap { difference, state in
            ["\(difference.kind)", Findings.oneLine(difference.text), state]
        }
        return ([counts.map(String.init).joined(separator: " ")] + lines).joined(separator: "\n")
    }

    private static func oneLine(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: " | ")
    }

    mutating func add(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let counts = (lines.first ?? "").split(separator: " ").compactMap { Int($0) }
        guard counts.count == 5 else { return }
        var other = Findings()
        other.recordingCount = counts[0]
        other.eventCount = counts[1]
        other.commitCount = counts[2]
        other.stateCount = counts[3]
        other.secondCrashCount = counts[4]
        for index in stride(from: 1, to: lines.count - 2, by: 3) {
            guard let kind = Difference.Kind.allCases.first(where: { "\($0)" == lines[index] })
            else { continue }
            let difference = Difference(kind: kind, text: lines[index + 1])
            other.differences.append((difference, lines[index + 2]))
        }
        add(other)
    }
}
