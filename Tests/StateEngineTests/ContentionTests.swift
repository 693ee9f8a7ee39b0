import StateEngine
import StateTestSupport
import Testing

@Suite struct ContentionTests {
    @Test func `8 threads that count up with a condition and retries lose nothing`() throws {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        onThreads(8) { _ in for _ in 0..<100 { increment(keyspace) } }
        #expect(count(keyspace) == 800)
        #expect(keyspace.entry(for: "count")?.version == 800)
        // Commits were grouped at most, never left out.
        #expect(backing.kept.map(\.version) == Array(1...800))
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])
    }

    @Test func `bounded: commits of long values join up to 8 MiB`() throws {
        let backing = HeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        defer {
            backing.open()
            keyspace.close()
        }
        let answerCount = Observed(0)
        func set(_ number: Int) {
            let value = [UInt8](repeating: 7, count: 3 << 20)
            keyspace.submit([.set(Key(verified: "k\(number)"), value)]) { _ in
                answerCount.update { $0 += 1 }
            }
        }
        set(0)
        #expect(backing.held()?.count == 1)
        for number in 1...8 { set(number) }
        backing.release()
        for _ in 0..<4 {
            #expect(try #require(backing.held()).count == 2)
            backing.release()
        }
        #expect(answerCount.wait { $0 == 9 })
    }

    @Test func `8 tasks that count up with a condition and retries lose nothing`() async throws {
        let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
        defer { keyspace.close() }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<50 { await increment(keyspace) } }
            }
        }
        #expect(count(keyspace) == 400)
    }

    @Test(arguments: Seed.each(2))
    func `writers get exactly one answer each while commits fail now and then`(seed: UInt64) throws
    {
        let backing = HeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        let answers = Observed<[String: [Result<Int64, StateError>]]>([:])
        let isDone = Observed(false)
        let disk = WorkerThread(name: "disk")
        disk.start {
            var random = SplitMix(seed: seed)
            while !isDone.current, backing.held() != nil {
                if random.chance(30) {
                    backing.fail(StateError(.noSpace, "the disk is full"))
                } else {
                    backing.release()
                }
            }
        }
        onThreads(4) { thread in
            for number in 0..<150 {
                let name = "\(thread)/\(number)"
                keyspace.submit([.set(Key(verified: name), [1]), .set("shared", Array(name.utf8))])
                {
                    answer in answers.update { $0[name, default: []].append(answer) }
                }
            }
        }
        #expect(answers.wait { $0.values.count == 600 }, "answers are missing")
        isDone.update { $0 = true }
        // One more commit, for which the disk may be waiting.
        keyspace.submit([.set("last", [])]) { _ in }
        disk.join()
        backing.open()
        keyspace.close()
        for (name, given) in answers.current {
            #expect(given.count == 1, "\(name)")
            let isThere = keyspace.entry(for: Key(verified: name)) != nil
            #expect(isThere == (try? given[0].get()).map { $0 > 0 } ?? false, "\(name): \(given)")
        }
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])
    }

    private func count(_ keyspace: LocalKeyspace) -> Int {
        keyspace.entry(for: "count").flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
    }
}

/// Adds 1 to the value of `count`, which nobody may have changed meanwhile.
private func increment(_ keyspace: LocalKeyspace) {
    while (try? keyspace.apply([nextCount(keyspace)])) == nil {}
}

private func increment(_ keyspace: LocalKeyspace) async {
    while (try? await keyspace.apply([nextCount(keyspace)])) == nil {}
}

private func nextCount(_ keyspace: LocalKeyspace) -> Mutation {
    let entry = keyspace.entry(for: "count")
    let count = entry.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
    return .set("count", Array("\(count + 1)".utf8), ifRevision: entry?.revision ?? 0)
}
