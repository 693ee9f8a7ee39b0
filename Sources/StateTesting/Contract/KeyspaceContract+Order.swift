import StateEngine

extension KeyspaceContract {
    /// Commits of 4 threads, each with transactions of 1 to 4 of 12 keys; every second thread uses
    /// the other connection.
    private func write(_ place: ContractPlace, _ count: Int) throws -> [Int64] {
        let revisions = StateLock<[Int64]>([])
        try onThreads(4) { thread in
            var random = ContractRandom(seed: seed &+ UInt64(thread))
            let writer = thread % 2 == 0 ? keyspace : other
            for number in 0..<count {
                let keys = Set((0...random.number(below: 4)).map { _ in random.number(below: 12) })
                let value = Array("\(thread).\(number)".utf8)
                // At least one key is set, so that there is a commit.
                let mutations = try keys.enumerated().map { index, key -> Mutation in
                    let key = try place.key(key)
                    return index > 0 && random.chance(30) ? .delete(key) : .set(key, value)
                }
                let revision = try writer.apply(mutations)
                revisions.withLock { $0.append(revision) }
            }
        }
        return revisions.withLock { $0.sorted() }
    }

    func checkOrder(_ place: ContractPlace, _ judge: Judge) throws {
        let watches = try [keyspace, keyspace, other].map {
            ContractWatch($0, [try place.pattern()])
        }
        for watch in watches { try watch.waitForStates(judge) }
        let revisions = try write(place, 100)
        try judge.expectEqual(Set(revisions).count, 400, "the number of revisions of 400 commits")
        for watch in watches {
            try watch.wait(judge, forCommit: revisions.last ?? 0)
            let commits = watch.commits
            let place = zip(commits, revisions).enumerated().first { $1.0 != $1.1 }
            try judge.expect(
                commits == revisions,
                "\(commits.count) of 400 commits were delivered, "
                    + (place.map { "\($0.element.0) instead of \($0.element.1)" } ?? "in order")
            )
        }
        let first = watches[0].delivered.dropFirst()
        for watch in watches {
            try judge.expect(
                watch.delivered.dropFirst() == first,
                "two watches got different changes for the same commits"
            )
        }
    }

    func checkConvergence(_ place: ContractPlace, _ judge: Judge) throws {
        let writer = WorkerThread(name: "contract")
        let outcome = StateLock<Result<[Int64], any Error>?>(nil)
        writer.start { [self] in
            let result = Result { try write(place, 60) }
            outcome.withLock { $0 = result }
        }
        // Each watch starts during the writes, and includes a part twice.
        var watches: [ContractWatch] = []
        for index in 0..<12 {
            let watch = ContractWatch(index % 2 == 0 ? keyspace : other, [try place.pattern("k1*")])
            watch.include([try place.pattern()])
            try watch.waitForStates(judge)
            watches.append(watch)
        }
        writer.join()
        _ = try outcome.withLock { $0 }?.get()
        let last = try keyspace.apply([.set(try place.key("last"), [])])
        let expected = try place.values(in: keyspace)
        for watch in watches {
            try watch.wait(judge, forCommit: last)
            try judge.expectEqual(try watch.replay(judge), expected, "the replayed values")
        }
    }
}
