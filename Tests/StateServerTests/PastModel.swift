import StateEngine
import StateTestSupport
import StateWire

/// What the keys were at each revision, as the replies of the commands that were sent say.
struct PastModel {
    typealias State = [String: String]

    /// The state after each commit; at 0 there is nothing.
    private(set) var states: [State] = [[:]]
    static let keys = ["a", "a/1", "a/2", "a/b/3", "b", "b/1", "box", "x", "x/y/z"]
    static let patterns = ["/", "a/", "a", "*x*", "b*", "[ab]/1", "none/"]

    var revision: Int64 { Int64(states.count - 1) }
    var current: State { states[states.count - 1] }

    /// Sends a command that changes something at random, and takes over what it says.
    mutating func step(_ peer: Peer, _ random: inout SplitMix) throws {
        if random.chance(10) {
            let pattern = PastModel.patterns[1...].randomElement(using: &random) ?? "a/"
            let reply = try peer.ask("STATE.DELETE \(pattern)")
            return try take(reply, current.filter { !PastModel.matches(pattern, $0.key) })
        }
        var next = current
        var words: [String] = []
        let count = random.chance(30) ? Int.random(in: 2...6, using: &random) : 1
        for _ in 0..<count {
            let key = PastModel.keys.randomElement(using: &random) ?? "a"
            if random.chance(30) {
                words += ["DELETE", key]
                next[key] = nil
            } else {
                let value = String(Int.random(in: 0..<50, using: &random))
                words += ["SET", key, value]
                next[key] = value
            }
        }
        let line = "STATE.APPLY \(count) \(words.joined(separator: " "))"
        try take(try peer.ask(line), next)
    }

    /// Takes over that a command made of the current state this one.
    mutating func take(_ reply: Reply, _ state: State) throws {
        guard let told = reply["revision"]?.integerValue else {
            throw SystemFailure("no commit: \(reply.shown)")
        }
        if told == revision + 1 { states.append(state) }
        guard told == revision, current == state else {
            throw SystemFailure("revision \(told) after \(revision)")
        }
    }

    /// What was there at a revision of what a pattern means.
    func state(_ pattern: String, at revision: Int64) -> State {
        states[Int(revision)].filter { PastModel.matches(pattern, $0.key) }
    }

    static func matches(_ pattern: String, _ key: String) -> Bool {
        guard let pattern = try? Pattern(pattern) else { return false }
        return Array(key.utf8).withUnsafeBytes { pattern.matches($0) }
    }
}

extension Reply {
    /// Keys and values of a listing, in its order.
    var listing: [[String]] {
        (elements ?? []).map { row in row.elements?.prefix(2).map { $0.textValue ?? "" } ?? [] }
    }
}

extension PastModel.State {
    /// Keys and values in key order.
    var listing: [[String]] {
        sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { [$0.key, $0.value] }
    }
}
