/// One write of a crash writer, in one of the ways to write several keys.
struct CrashWrite: Equatable {
    enum Kind: String, CaseIterable {
        case set
        /// STATE.SET of the same keys; its reply contains the revision.
        case stateSet = "state.set"
        case delete
        case mset
        case multi
        case apply
    }

    /// Rises by one with each write of a writer; the same for all keys of a group.
    var stamp: Int
    var kind: Kind
    /// The key, or the group of keys.
    var index: Int

    static let singleCount = 64
    static let groupCount = 4
    static let groupSize = 5

    /// The next write, at random.
    init(stamp: Int, random: inout SplitMix, plain: Bool) {
        self.stamp = stamp
        kind =
            switch random.next(below: 100) {
            case 0..<35: .set
            case 35..<55: plain ? .set : .stateSet
            case 55..<60: .delete
            case 60..<75: .mset
            case 75..<90: .multi
            default: plain ? .multi : .apply
            }
        index = random.next(below: kind.isGroup ? Self.groupCount : Self.singleCount)
    }

    init(stamp: Int, kind: Kind, index: Int) {
        self.stamp = stamp
        self.kind = kind
        self.index = index
    }

    func keys(writer: Int) -> [String] {
        guard kind.isGroup else { return ["crash/\(writer)/set/\(index)"] }
        return (0..<Self.groupSize).map { "crash/\(writer)/\(kind.rawValue)/\(index)/\($0)" }
    }

    /// How many replies the write has; the last one decides whether it was made.
    var replyCount: Int { kind == .multi ? Self.groupSize + 2 : 1 }

    func append(to queue: inout ByteQueue, writer: Int) {
        let keys = keys(writer: writer)
        switch kind {
        case .set: Self.append(to: &queue, ["SET"], keys, stamp)
        case .stateSet: Self.append(to: &queue, ["STATE.SET"], keys, stamp)
        case .delete: queue.append(command: ["DEL"] + keys)
        case .mset: Self.append(to: &queue, ["MSET"], keys, stamp)
        case .apply:
            Self.append(to: &queue, ["STATE.APPLY", "\(keys.count)"], keys, stamp, before: "SET")
        case .multi:
            queue.append(command: ["MULTI"])
            for key in keys { Self.append(to: &queue, ["SET"], [key], stamp) }
            queue.append(command: ["EXEC"])
        }
    }

    private static func append(
        to queue: inout ByteQueue,
        _ verb: [String],
        _ keys: [String],
        _ stamp: Int,
        before word: String? = nil
    ) {
        queue.append("*\(verb.count + keys.count * (word == nil ? 2 : 3))\r\n")
        for part in verb { queue.append(bulk: part) }
        for key in keys {
            if let word { queue.append(bulk: word) }
            queue.append(bulk: key)
            queue.append(bulk: CrashValue.make(key: key, stamp: stamp))
        }
    }
}

extension CrashWrite.Kind {
    var isGroup: Bool {
        switch self {
        case .set, .stateSet, .delete: false
        case .mset, .multi, .apply: true
        }
    }
}
