import StateEngine

extension KeyspaceContract {
    private typealias Delivered = ContractWatch.Delivered

    func checkState(_ place: ContractPlace, _ judge: Judge) throws {
        let (a, b) = (try place.key("in/a"), try place.key("in/b"))
        let outside = try place.key("out")
        let before = try keyspace.apply([.set(a, [1]), .set(outside, [9])])
        for reader in [keyspace, other] {
            let pattern = try place.pattern("in/")
            let watch = ContractWatch(reader, [pattern])
            try watch.waitForStates(judge)
            guard case .state(let revision, [pattern], [a: [1]])? = watch.delivered.first else {
                throw ContractViolation(judge.rule, "the first event is \(watch.delivered)")
            }
            try judge.expect(
                revision >= before,
                "the state has revision \(revision), but \(before) was answered"
            )
            let second = try keyspace.apply([.set(b, []), .set(outside, [8])])
            try keyspace.apply([.set(outside, [7])])
            let third = try keyspace.apply([.delete(b), .set(a, [1])])
            try watch.wait(judge, forCommit: third)
            try judge.expectEqual(
                Array(watch.delivered.dropFirst()),
                [.commit(second, [b: []]), .commit(third, [a: [1], b: nil])],
                "the events after the state"
            )
        }
    }

    func checkWholeness(_ place: ContractPlace, _ judge: Judge) throws {
        let keys = try (0..<6).map { try place.key("k\($0)/x") }
        let watch = ContractWatch(keyspace, try (0..<5).map { try place.pattern("k\($0)/") })
        watch.include([Pattern(keys[0]), try place.pattern("k[0-4]/*")])
        try watch.waitForStates(judge)
        var expected: [Delivered] = []
        for number in UInt8(0)..<20 {
            let revision = try keyspace.apply(keys.map { .set($0, [number]) })
            let changes = keys.dropLast().map { ($0, [UInt8]?.some([number])) }
            expected.append(.commit(revision, Dictionary(uniqueKeysWithValues: changes)))
        }
        try watch.wait(judge, forCommit: expected.last?.commitRevision ?? 0)
        let commits = watch.delivered.filter { $0.commitRevision != nil }
        try judge.expectEqual(commits, expected, "the delivered commits")
    }

    func checkAnswers(_ place: ContractPlace, _ judge: Judge) throws {
        let watches = try (0..<3).map { _ in ContractWatch(keyspace, [try place.pattern()]) }
        for watch in watches { try watch.waitForStates(judge) }
        try onThreads(4) { thread in
            let key = try place.key(thread)
            for number in UInt8(0)..<50 {
                let answered = BlockingSemaphore()
                // Nil until the answer.
                let missing = StateLock<[String]?>(nil)
                keyspace.submit([.set(key, [number])]) { answer in
                    let found = ContractWatch.missing(answer, in: watches)
                    missing.withLock { $0 = found }
                    answered.signal()
                }
                let findings = try judge.wait(answered, for: "an answer") {
                    missing.withLock { $0 }
                }
                try judge.expect(findings.isEmpty, findings.joined(separator: ", "))
            }
        }
    }

    func checkInclusion(_ place: ContractPlace, _ judge: Judge) throws {
        let (a, b) = (try place.key("a"), try place.key("b"))
        let watch = ContractWatch(keyspace, [])
        var expected: [Delivered] = []
        func write(_ value: UInt8, delivers keys: Key...) throws {
            let revision = try keyspace.apply([.set(a, [value]), .set(b, [value])])
            let changes = keys.map { ($0, [UInt8]?.some([value])) }
            if !keys.isEmpty {
                expected.append(.commit(revision, Dictionary(uniqueKeysWithValues: changes)))
            }
        }
        func include(_ key: Key, _ value: UInt8) throws {
            watch.include([Pattern(key)])
            let delivered = try watch.wait(judge, for: "a state") { $0.count > expected.count }
            guard case .state(let revision, [Pattern(key)], [key: [value]])? = delivered.last else {
                throw ContractViolation(judge.rule, "after including '\(key)': \(delivered)")
            }
            expected.append(.state(revision, [Pattern(key)], [key: [value]]))
        }
        try write(1)
        try include(a, 1)
        try write(2, delivers: a)
        try include(b, 2)
        try include(a, 2)
        watch.exclude([Pattern(a)])
        try write(3, delivers: a, b)
        watch.exclude([Pattern(a)])
        try write(4, delivers: b)
        try include(a, 4)
        try write(5, delivers: a, b)
        try watch.wait(judge, for: "the last commit") { $0.count >= expected.count }
        watch.cancel()
        try write(6)
        // The probe's state is delivered after that commit.
        let probe = ContractWatch(keyspace, [Pattern(a)])
        try probe.waitForStates(judge)
        try judge.expectEqual(watch.delivered, expected, "the events")
    }

    func checkWatches(_ place: ContractPlace, _ judge: Judge) throws {
        let names = ["x/", "x/*1", "y/", ""]
        let patterns = try names.map { try place.pattern($0) }
        let watches = patterns.map { ContractWatch(keyspace, [$0]) }
        for watch in watches { try watch.waitForStates(judge) }
        var expected = Array(repeating: [Delivered](), count: names.count)
        for number in 0..<40 {
            let key = try place.key((number % 3 == 0 ? "y/" : "x/") + "\(number % 12)")
            let value = Array("\(number)".utf8)
            let revision = try keyspace.apply([.set(key, value)])
            for (index, pattern) in patterns.enumerated() where pattern.matches(key) {
                expected[index].append(.commit(revision, [key: value]))
            }
        }
        for (watch, expected) in zip(watches, expected) {
            try watch.wait(judge, forCommit: expected.last?.commitRevision ?? 0)
            try judge.expectEqual(Array(watch.delivered.dropFirst()), expected, "the events")
        }
    }

    func checkFeedback(_ place: ContractPlace, _ judge: Judge) throws {
        let key = try place.key("count")
        let watch = ContractWatch(keyspace, [Pattern(key)]) { [keyspace] event in
            guard case .commit(_, let changes, _) = event, let value = changes.first?.value,
                value.count < 50
            else { return }
            keyspace.submit([.set(key, value + [1])]) { _ in }
        }
        try watch.waitForStates(judge)
        try keyspace.apply([.set(key, [])])
        let delivered = try watch.wait(judge, for: "the 51st commit") { $0.count > 51 }
        let counts = delivered.compactMap { event -> Int? in
            if case .commit(_, let changes) = event { changes[key]??.count } else { nil }
        }
        try judge.expectEqual(counts, Array(0...50), "the lengths of the values")
    }
}

extension ContractWatch {
    /// The faults of an answer that arrives now.
    fileprivate static func missing(
        _ answer: Result<Int64, StateError>,
        in watches: [ContractWatch]
    ) -> [String] {
        switch answer {
        case .success(let revision):
            watches.map(\.commits).filter { !$0.contains(revision) }
                .map { "revision \(revision) was answered when only \($0.last ?? 0) was delivered" }
        case .failure(let error): ["\(error)"]
        }
    }
}
