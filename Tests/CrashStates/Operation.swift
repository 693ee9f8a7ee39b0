/// What one writer asks for, and what has to come of it.
struct Operation {
    /// The commands, in order.
    var commands: [[[UInt8]]]
    /// What the last answer has to be like.
    var isAnswer: (Value) -> Bool
    var changes: [String: [UInt8]?]
    /// Whether the answer says that it is on stable storage.
    var isSynced = true
}

/// Makes the operations of one writer, whose keys nobody else writes.
struct Writer {
    let number: Int
    let mix: Workload.Mix
    /// What its keys hold once all is done that it has asked for.
    var present: [String: [UInt8]] = [:]
    private var count = 0
    /// What its keys may begin with.
    private var prefixes: [String]

    init(number: Int, mix: Workload.Mix) {
        self.number = number
        self.mix = mix
        prefixes = mix.prefixes
    }

    mutating func next(_ random: inout Random) -> Operation {
        let operation: Operation
        if random.chance(mix.multi) {
            operation = several(&random)
        } else if random.chance(mix.delete),
            let key = present.keys.sorted().randomElement(using: &random)
        {
            operation = delete(key, &random)
        } else {
            operation = set(&random)
        }
        for (key, value) in operation.changes { present[key] = value }
        return operation
    }

    /// Memory is gone after a start, and there may be none now.
    mutating func beginLife(_ rules: [Workload.Rule]) {
        present = present.filter { !Keys.isMemory($0.key) }
        let hasMemory = rules.contains { $0.prefix == Keys.memoryPattern }
        prefixes = mix.prefixes.filter { hasMemory || !Keys.isMemory($0) }
    }

    private func key(_ random: inout Random) -> String {
        let prefix = random.one(of: prefixes)
        // Some are in directories of their own.
        let name =
            random.chance(0.3) ? "s\(random.below(2))/n\(random.below(4))" : "n\(random.below(8))"
        return "\(prefix)\(number)/\(name)"
    }

    private mutating func value(_ random: inout Random) -> [UInt8] {
        count += 1
        let length =
            random.chance(mix.longValues)
            ? Int.random(in: mix.longByteCount, using: &random) : random.below(60)
        var bytes = Array("\(number).\(count).".utf8)
        for index in 0..<length { bytes.append(UInt8(97 + (index * 7 + count) % 26)) }
        return bytes
    }

    private mutating func set(_ random: inout Random) -> Operation {
        let key = key(&random)
        let value = value(&random)
        let words = [Array(key.utf8), value]
        if random.chance(0.5) {
            let isSynced = random.chance(0.8)
            let rest = isSynced ? [] : ["DURABILITY", "memory"].map { Array($0.utf8) }
            return Operation(
                commands: [[Array("STATE.SET".utf8)] + words + rest],
                isAnswer: { $0["revision"]?.number != nil },
                changes: [key: value],
                isSynced: isSynced
            )
        }
        return Operation(
            commands: [[Array("SET".utf8)] + words],
            isAnswer: { $0 == .text("OK") },
            changes: [key: value]
        )
    }

    private func delete(_ key: String, _ random: inout Random) -> Operation {
        let verb = random.chance(0.5) ? "DEL" : "STATE.DELETE"
        return Operation(
            commands: [[Array(verb.utf8), Array(key.utf8)]],
            isAnswer: { ($0.number ?? $0["count"]?.number) == 1 },
            changes: [key: [UInt8]?.none]
        )
    }

    /// One transaction of several keys: MULTI, MSET or STATE.APPLY.
    private mutating func several(_ random: inout Random) -> Operation {
        var changes: [String: [UInt8]?] = [:]
        for _ in 0..<(2 + random.below(4)) {
            let key = key(&random)
            if random.chance(mix.delete), present[key] != nil {
                changes[key] = .some(nil)
            } else {
                changes[key] = value(&random)
            }
        }
        let sorted = changes.sorted { $0.key < $1.key }
        if random.chance(0.3), sorted.allSatisfy({ $0.value != nil }) {
            let words = sorted.flatMap { [Array($0.key.utf8), $0.value ?? []] }
            return Operation(
                commands: [[Array("MSET".utf8)] + words],
                isAnswer: { $0 == .text("OK") },
                changes: changes
            )
        }
        return random.chance(0.5) ? Writer.multi(sorted) : Writer.apply(sorted)
    }

    private static func multi(_ changes: [(key: String, value: [UInt8]?)]) -> Operation {
        let commands = changes.map { key, value in
            value.map { [Array("SET".utf8), Array(key.utf8), $0] }
                ?? [Array("DEL".utf8), Array(key.utf8)]
        }
        let count = changes.count
        return Operation(
            commands: [[Array("MULTI".utf8)]] + commands + [[Array("EXEC".utf8)]],
            isAnswer: { $0.list?.count == count },
            changes: Dictionary(uniqueKeysWithValues: changes.map { ($0.key, $0.value) })
        )
    }

    private static func apply(_ changes: [(key: String, value: [UInt8]?)]) -> Operation {
        let words = changes.flatMap { key, value in
            value.map { [Array("SET".utf8), Array(key.utf8), $0] }
                ?? [Array("DELETE".utf8), Array(key.utf8)]
        }
        let count = Int64(changes.count)
        return Operation(
            commands: [[Array("STATE.APPLY".utf8), Array("\(count)".utf8)] + words],
            isAnswer: { $0["count"]?.number == count },
            changes: Dictionary(uniqueKeysWithValues: changes.map { ($0.key, $0.value) })
        )
    }
}
