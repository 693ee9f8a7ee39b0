import StateTestSupport
import StateWire

/// What one client sends: no value twice, so that each tells who wrote it and when.
struct Writer {
    let number: Int
    var random: SplitMix
    private var sequence = 0

    init(number: Int, random: SplitMix) {
        self.number = number
        self.random = random
    }

    /// Commands that are answered together, and what the last of their replies tells.
    struct Request {
        var commands: [String]
        var changes: [Told.Change] = []
        var kind: Kind

        enum Kind { case set, stateSet, transaction, get }

        /// What the replies tell; nil where they are not what they may be.
        func told(by replies: [Reply]) -> (changes: [Told.Change], revision: Int64?)? {
            let last = replies.last ?? .null
            switch kind {
            case .set: return last == .simple("OK") ? (changes, nil) : nil
            case .stateSet: return last["revision"]?.integerValue.map { (changes, $0) }
            case .transaction:
                let count = last.elements?.count
                return count == commands.count - 2 ? (changes, nil) : nil
            case .get:
                if last == .null { return ([], nil) }
                let key = String(commands[0].dropFirst("GET ".count))
                return last.textValue.map { ([Told.Change(key: key, value: $0)], nil) }
            }
        }
    }

    /// One to four requests, to be sent at once.
    mutating func nextRequests() -> [Request] {
        (0..<Int.random(in: 1...4, using: &random)).map { _ in nextRequest() }
    }

    private mutating func nextRequest() -> Request {
        let changes = (0..<Int.random(in: 2...5, using: &random)).map { nextChange($0) }
        let pairs = changes.map { "\($0.key) \($0.value ?? "")" }
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
            return Request(commands: ["SET \(pairs[0])"], changes: [changes[0]], kind: .set)
        case 3..<5:
            let command = "STATE.SET \(pairs[0])"
            return Request(commands: [command], changes: [changes[0]], kind: .stateSet)
        case 5:
            let command = "MSET " + pairs.joined(separator: " ")
            return Request(commands: [command], changes: changes, kind: .set)
        case 6, 7:
            let sets = pairs.map { "SET \($0)" }
            let delete = "DEL shared/\(Int.random(in: 0..<3, using: &random))"
            return Request(
                commands: ["MULTI"] + sets + [delete, "EXEC"],
                changes: changes,
                kind: .transaction
            )
        default:
            let key = "shared/\(Int.random(in: 0..<6, using: &random))"
            return Request(commands: ["GET \(key)"], kind: .get)
        }
    }

    /// Keys of one commit differ; the first of the shared ones are deleted by others now and then.
    private mutating func nextChange(_ index: Int) -> Told.Change {
        sequence += 1
        let isLong = random.chance(3)
        let padding = Int.random(in: 0..<(isLong ? 6_000 : 120), using: &random)
        let key = index == 0 ? "shared/\(3 + sequence % 3)" : "w\(number)/\(index)"
        return Told.Change(
            key: key,
            value: "\(number).\(sequence)." + String(repeating: "x", count: padding)
        )
    }
}
