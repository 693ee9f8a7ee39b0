import StateEngine

extension BackingContract {
    func checkChanges(_ judge: Judge) throws {
        var store = try ContractStore(self)
        for number in 0..<100 {
            try store.commit([store.history.randomTransaction(number % 8 + 1)])
        }
        try store.closeAndCheck(self, judge)
    }

    func checkBounds(_ judge: Judge) throws {
        var store = try ContractStore(self)
        let large = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let keys = (0..<3).map { ContractKeys.numbered(1_000 + $0) }
        try store.commit([
            store.history.transaction([
                (keys[0], []), (keys[1], large), (ContractKeys.longest, []), (keys[2], [0]),
            ])
        ])
        try store.commit([store.history.transaction([(keys[0], large), (keys[1], [])])])
        try store.commit([store.history.transaction([(ContractKeys.longest, large)])])
        try store.closeAndCheck(self, judge)
    }

    func checkDeletes(_ judge: Judge) throws {
        var store = try ContractStore(self)
        let keys = (0..<4).map { ContractKeys.numbered(2_000 + $0) }
        for value in [[1], nil, [2, 2], nil] as [[UInt8]?] {
            try store.commit([store.history.transaction(keys.map { ($0, value) })])
        }
        // Deleted and set in one batch, and in the opposite order.
        try store.commit([
            store.history.transaction([(keys[0], [3]), (keys[1], [3])]),
            store.history.transaction([(keys[0], nil), (keys[1], nil)]),
            store.history.transaction([(keys[0], [])]),
        ])
        try store.closeAndCheck(self, judge)
    }

    func checkBatches(_ judge: Judge) throws {
        var store = try ContractStore(self)
        try store.commit((0..<64).map { _ in store.history.randomTransaction(5) })
        let many = max(2, commitCount / 10)
        let writes = (0..<many).map {
            (key: ContractKeys.numbered(3_000 + $0), value: [UInt8]?.some([7]))
        }
        try store.commit([store.history.transaction(writes)])
        let deletes = writes.map { (key: $0.key, value: [UInt8]?.none) }
        try store.commit([
            store.history.transaction(deletes), store.history.randomTransaction(20),
        ])
        try store.closeAndCheck(self, judge)
    }

    func checkManyCommits(_ judge: Judge) throws {
        var store = try ContractStore(self)
        for number in 0..<commitCount {
            let key = ContractKeys.numbered(number % 7)
            try store.commit([store.history.transaction([(key, Array("\(number)".utf8))])])
        }
        try store.closeAndCheck(self, judge)
    }

    func checkUncleanEnd(_ judge: Judge) throws {
        func run() throws -> ContractStore.Left {
            var store = try ContractStore(self)
            for _ in 0..<20 { try store.commit([store.history.randomTransaction(6)]) }
            return store.left
        }
        try run().checkNext(self, judge)
    }

    func checkIdentity(_ judge: Judge) throws {
        var store = try ContractStore(self)
        for start in 0..<4 {
            // Nothing is committed before the last start.
            if start < 3 { try store.commit([store.history.randomTransaction(3)]) }
            let left = store.left
            store.backing.close()
            store = try ContractStore(self)
            try left.checkIdentity(store.loaded, keeping, judge)
        }
        store.backing.close()
    }

    func checkReopening(_ judge: Judge) throws {
        guard keeping == .history || makeOutcomeUnknown != nil else { return }
        var store = try ContractStore(self)
        try store.commit([store.history.randomTransaction(5)])
        let acknowledged = store.history
        if let makeOutcomeUnknown {
            makeOutcomeUnknown(store.backing)
            let keys = (0..<4).map { ContractKeys.numbered(4_000 + $0) }
            let next = [store.history.transaction(keys.map { ($0, [1]) })]
            try judge.expectRefusal(.readOnly, "a commit of unknown outcome") {
                try store.commit(next)
            }
        }
        var beyond: [ContractHistory.Change] = []
        try store.backing.reopen(after: acknowledged.lastRevision) { beyond.append(.init($0)) }
        let unknown = Array(store.history.changes.dropFirst(acknowledged.changes.count))
        try judge.expect(
            beyond.isEmpty || keeping == .history && beyond == unknown
                || keeping == .values && beyond.map(\.value) == unknown.map(\.value),
            "it passes on \(beyond.map(\.shown)), not \(unknown.map(\.shown))"
        )
        if beyond.isEmpty { store.history = acknowledged }
        try store.commit([store.history.randomTransaction(5)])
        try store.closeAndCheck(self, judge)
    }

    func checkOwner(_ judge: Judge) throws {
        guard keeping != .nothing else { return }
        var store = try ContractStore(self)
        try judge.expectRefusal(.locked, "the second open") { try ContractStore(self) }
        try store.commit([store.history.randomTransaction(3)])
        try store.closeAndCheck(self, judge)
    }

    func checkKeyspace(_ judge: Judge) throws {
        func entries(_ body: (LocalKeyspace) throws -> Void = { _ in }) throws -> [Key: Entry] {
            let keyspace = try LocalKeyspace(backing: open())
            defer { keyspace.close() }
            try body(keyspace)
            let all = keyspace.entries(.everything, after: nil, limit: Int.max)
            return Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0.entry) })
        }
        let before = try entries { keyspace in
            try onThreads(4) { thread in
                var random = ContractRandom(seed: seed &+ UInt64(thread))
                for _ in 0..<50 { try keyspace.apply(random.mutations()) }
            }
        }
        let after = try entries()
        try judge.expect(!before.isEmpty, "nothing was set")
        switch keeping {
        case .history: try judge.expectEqual(after, before, "the entries")
        case .values:
            try judge.expectEqual(
                after.mapValues(\.value),
                before.mapValues(\.value),
                "the values"
            )
        case .nothing: try judge.expectEqual(after, [:], "the entries")
        }
    }
}

extension ContractRandom {
    /// Some keys, each set or deleted.
    fileprivate mutating func mutations() throws -> [Mutation] {
        try (0...number(below: 4)).map { _ in
            let key = try Key(bytes: ContractKeys.numbered(number(below: 40)))
            return chance(25) ? .delete(key) : .set(key, bytes(number(below: 50)))
        }
    }
}
