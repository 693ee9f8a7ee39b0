/// What a check of one key's history found.
package enum Verdict: Sendable {
    /// There is an order that explains every answer.
    case linearizable(Order)
    /// There is none.
    case refuted(Refutation)
    /// More configurations than the limit; nothing is known.
    case undecided(Refutation)

    /// An order that explains the answers.
    package struct Order: Sendable {
        /// The operations that happened.
        package let operations: [Operation]
        /// How many configurations were looked at.
        package let configurationCount: Int
    }

    /// How many configurations were looked at.
    package var configurationCount: Int {
        switch self {
        case .linearizable(let order): order.configurationCount
        case .refuted(let refutation), .undecided(let refutation): refutation.configurationCount
        }
    }

    /// Why it cannot be accepted; nil where it is.
    package var fault: Refutation? {
        switch self {
        case .linearizable: nil
        case .refuted(let refutation), .undecided(let refutation): refutation
        }
    }
}

/// A history that no order explains, and how far the longest attempt came.
package struct Refutation: Sendable, CustomStringConvertible {
    /// All operations of the key that say something, by the time at which they were sent.
    package let operations: [Operation]
    /// How many configurations were looked at.
    package let configurationCount: Int
    /// What the longest attempt placed, in its order.
    let longest: [Int]
    /// The key as that attempt left it.
    let state: KeyState

    /// The history as a table; the first column is the place of each operation in the longest attempt.
    package var description: String {
        let start = operations.first?.invoked ?? 0
        var places = [Int](repeating: 0, count: operations.count)
        for (place, index) in longest.enumerated() { places[index] = place + 1 }
        var lines = [
            "key '\(operations.first?.key ?? "")': no order explains these \(operations.count) operations; "
                + "the longest attempt placed \(longest.count), after which the key is \(state) "
                + "(\(configurationCount) configurations)",
            "place client       from µs         to µs  operation",
        ]
        for (place, operation) in zip(places, operations) {
            let end = operation.ended == .max ? "?" : microseconds(operation.ended - start)
            lines.append(
                pad(place == 0 ? "-" : "\(place)", 5) + pad("\(operation.client)", 7)
                    + pad(microseconds(operation.invoked - start), 14) + pad(end, 14)
                    + "  \(operation.request): \(operation.outcome)"
            )
        }
        return lines.joined(separator: "\n")
    }

    private func microseconds(_ nanoseconds: Int64) -> String {
        "\(nanoseconds / 1_000)." + pad("\(nanoseconds % 1_000)", 3, with: "0")
    }

    private func pad(_ text: String, _ width: Int, with filler: Character = " ") -> String {
        String(repeating: filler, count: max(0, width - text.count)) + text
    }
}
