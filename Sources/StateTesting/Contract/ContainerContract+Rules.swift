import StateContainers

extension ContainerContract {
    private func counter(
        _ place: ContractPlace,
        _ name: String = "count"
    ) throws -> PersistentState<Int> {
        try PersistentState(0, key: place.key(name), in: keyspace, codec: .contractDigits)
    }

    private func expectStored(_ text: String, _ key: Key, _ judge: Judge) throws {
        let stored = try keyspace.entry(for: key)?.value
        try judge.expectEqual(stored, Array(text.utf8), "the stored value")
    }

    func checkVisibility(_ place: ContractPlace, _ judge: Judge) throws {
        let (first, second) = (try counter(place), try counter(place))
        for number in 1...20 {
            let (writer, reader) = number % 2 == 0 ? (first, second) : (second, first)
            let revision = try writer.modify(number)
            try judge.expectEqual(reader.value, number, "the other container's value")
            try judge.expectEqual(writer.versioned.revision, revision, "the revision")
            try expectStored("\(number)", first.key, judge)
        }
        try judge.expectEqual(
            try first.modify { value in
                value += 1
                return "\(value)"
            },
            "21",
            "the result of a body"
        )
    }

    func checkAtomicity(_ place: ContractPlace, _ judge: Judge) throws {
        struct Refusal: Error {}
        let state = try counter(place)
        let before = try state.modify(1)
        let outcome = Result {
            try state.modify { value in
                value = 9
                throw Refusal()
            }
        }
        guard case .failure(let error) = outcome, error is Refusal else {
            throw ContractViolation(judge.rule, "a body that throws gives \(outcome)")
        }
        try judge.expectEqual(state.value, 1, "the value")
        try judge.expectEqual(state.versioned.revision, before, "the revision")
        try judge.expectEqual(
            try keyspace.entry(for: state.key)?.revision,
            before.number,
            "the entry's revision"
        )
    }

    func checkIncrements(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try counter(place)
        let key = state.key
        let results = StateLock<[Int]>([])
        try onThreads(4) { thread in
            for _ in 0..<50 {
                if thread < 2 {
                    let result = try state.modify { value in
                        value += 1
                        return value
                    }
                    results.withLock { $0.append(result) }
                } else {
                    try incrementElsewhere(key)
                }
            }
        }
        try expectStored("200", key, judge)
        let distinct = results.withLock { Set($0).count }
        try judge.expectEqual(distinct, 100, "the number of different results")
        // Another writer writes while the body runs, so that it must run again.
        var runs: [Int] = []
        try state.modify { value in
            runs.append(value)
            if runs.count == 1 {
                let writer = WorkerThread(name: "contract")
                writer.start { _ = try? other.apply([.set(key, Array("1000".utf8))]) }
                writer.join()
            }
            value += 1
        }
        try judge.expectEqual(runs, [200, 1_000], "the values that the runs of one body get")
        try judge.expectEqual(state.value, 1_001, "the value")
    }

    private func incrementElsewhere(_ key: Key) throws(StateError) {
        while true {
            let entry = try other.entry(for: key)
            let count = entry.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
            let bytes = Array("\(count + 1)".utf8)
            do {
                try other.apply([.set(key, bytes, ifRevision: entry?.revision ?? 0)])
                return
            } catch {
                guard error.code == .conflict else { throw error }
            }
        }
    }

    func checkRevisions(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try counter(place)
        let absent = state.versioned.revision
        let first = try state.modify(1, ifRevision: absent)
        try judge.expectRefusal(.conflict, "a change at the revision before") {
            try state.modify(2, ifRevision: absent)
        }
        try judge.expectEqual(state.value, 1, "the value")
        try state.modify(2, ifRevision: first)
        try judge.expectEqual(state.value, 2, "the value")
    }

    func checkUndecodable(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try counter(place)
        try state.modify(5)
        try other.apply([.set(state.key, Array("five".utf8))])
        try judge.expectRefusal(.undecodable, "a change of bytes that do not decode") {
            try state.modify { $0 += 1 }
        }
        try judge.expectEqual(state.value, 5, "the value")
        guard case .undecodable = state.status else {
            throw ContractViolation(judge.rule, "the status is \(state.status)")
        }
        try judge.expectRefusal(.undecodable, "a transaction over it") {
            try withTransaction { $0[state] += 1 }
        }
        try expectStored("five", state.key, judge)
        try state.replace(6)
        try judge.expectEqual(state.value, 6, "the value")
        try judge.expectEqual(state.status, .current, "the status")
        try expectStored("6", state.key, judge)
        try other.apply([.set(try place.key("bad"), Array("five".utf8))])
        try judge.expectRefusal(.undecodable, "a new container") { try counter(place, "bad") }
    }

    func checkOrigin(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try counter(place)
        try judge.expectEqual(state.origin, .defaulted, "the origin")
        try judge.expect(
            try keyspace.entry(for: state.key) == nil,
            "an entry was made without a write"
        )
        try state.modify(3)
        try judge.expectEqual(state.origin, .stored, "the origin")
        try other.apply([.delete(state.key)])
        try state.modify { $0 += 1 }
        try judge.expectEqual(state.value, 1, "the value")
    }

    func checkTypes(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try counter(place)
        try judge.expectRefusal(.typeMismatch, "a container of Bool on a key of Int") {
            try PersistentState(
                false,
                key: state.key,
                in: keyspace,
                codec: StateCodec(encode: { _ in [] }, decode: { _ in true })
            )
        }
        try state.modify(1)
    }

    func checkTransactions(_ place: ContractPlace, _ judge: Judge) throws {
        struct Refusal: Error {}
        let accounts = try (0..<3).map { try counter(place, "account/\($0)") }
        try withTransaction { tx in
            for account in accounts { tx[account] = 100 }
        }
        let revisions = try accounts.map { try keyspace.entry(for: $0.key)?.revision }
        try judge.expectEqual(Set(revisions).count, 1, "the number of commits of one transaction")
        try onThreads(4) { thread in
            var random = ContractRandom(seed: UInt64(thread))
            for number in 0..<50 {
                let from = accounts[random.number(below: 3)]
                let to = accounts[random.number(below: 3)]
                try? withTransaction { tx in
                    tx[from] -= 1
                    if number % 10 == 9 { throw Refusal() }
                    tx[to] += 1
                }
                let sum = try withTransaction { tx in accounts.reduce(0) { $0 + tx[$1] } }
                try judge.expectEqual(sum, 300, "the sum of the accounts")
            }
        }
        let stored = try place.values(in: other).values
        try judge.expectEqual(
            stored.reduce(0) { $0 + (Int(String(decoding: $1, as: UTF8.self)) ?? 0) },
            300,
            "the sum of the stored values"
        )
    }

    nonisolated(nonsending) func checkFlush(
        _ place: ContractPlace
    ) async throws(ContractViolation) {
        let rule = Rule.flushesAll.rawValue
        do {
            let state = try counter(place)
            for _ in 0..<50 { try await state.modify(durability: .memory) { $0 += 1 } }
            try await state.flush()
            let stored = try keyspace.entry(for: state.key)?.value
            try place.clear()
            guard stored != Array("50".utf8) else { return }
            throw ContractViolation(rule, "after 50 changes stored is \(stored ?? [])")
        } catch {
            throw ContractViolation(rule, error)
        }
    }
}
