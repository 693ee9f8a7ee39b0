import StateEngine

extension KeyspaceContract {
    func checkAllOrNone(_ place: ContractPlace, _ judge: Judge) throws {
        let keys = try (0..<3).map { try place.key($0) }
        let first = try keyspace.apply(keys.map { .set($0, [1]) })
        for key in keys {
            let entry = try entry(key, judge)
            try judge.expectEqual(entry.revision, first, "the revision of '\(key)'")
        }
        try judge.expectRefusal(.conflict, "a transaction whose last condition fails") {
            try keyspace.apply([
                .set(keys[0], [2]), .delete(keys[1]), .set(try place.key("new"), [2]),
                .check(keys[2], revision: first + 1),
            ])
        }
        let values = try place.values(in: keyspace)
        try judge.expectEqual(
            values,
            Dictionary(uniqueKeysWithValues: keys.map { ($0, [1]) }),
            "the values"
        )
        // The last mutation of a key determines its state after the commit.
        try keyspace.apply([
            .set(keys[0], [2]), .delete(keys[0]), .set(keys[1], []), .set(keys[1], [4]),
        ])
        try judge.expectEqual(
            try place.values(in: keyspace),
            [keys[1]: [4], keys[2]: [1]],
            "the values"
        )
    }

    func checkConditions(_ place: ContractPlace, _ judge: Judge) throws {
        let key = try place.key("a")
        func refused(_ mutation: Mutation, at revision: Int64) throws {
            let error = try judge.expectRefusal(.conflict, "\(mutation)") {
                try keyspace.apply([mutation])
            }
            try judge.expect(
                error.message.contains("\(revision)"),
                "the conflict does not name revision \(revision): \(error.message)"
            )
        }
        try keyspace.apply([.check(key, revision: 0)])
        let first = try keyspace.apply([.set(key, [1], ifRevision: 0)])
        try refused(.set(key, [2], ifRevision: 0), at: first)
        try refused(.set(key, [2], ifRevision: first + 1), at: first)
        try refused(.delete(key, ifRevision: first - 1), at: first)
        try refused(.check(key, revision: 0), at: first)
        try judge.expectEqual(try entry(key, judge).value, [1], "the value")
        let second = try keyspace.apply([.set(key, [2], ifRevision: first)])
        try judge.expect(second > first, "revision \(second) follows \(first)")
        try keyspace.apply([.check(key, revision: second), .delete(key, ifRevision: second)])
        try judge.expect(try keyspace.entry(for: key) == nil, "a deleted entry is there")
        try refused(.set(key, [3], ifRevision: second), at: 0)
        // No change is needed.
        let idle = try keyspace.apply([.delete(key), .delete(try place.key("absent"))])
        try judge.expect(idle > second, "a delete of nothing is answered with \(idle)")
    }

    func checkDictionary(_ place: ContractPlace, _ judge: Judge) throws {
        var random = ContractRandom(seed: seed)
        var model = ContractModel()
        for number in 0..<500 {
            let mutations = try random.mutations(place, model)
            let outcome = Result { () throws(StateError) in try keyspace.apply(mutations) }
            try model.take(mutations, outcome, judge)
            if number % 50 == 49 {
                try model.check(try place.entries(in: keyspace), judge)
                try model.check(try place.entries(in: other), judge)
            }
        }
    }

    func checkBounds(_ place: ContractPlace, _ judge: Judge) throws {
        let large = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let longest = try Key(bytes: ContractKeys.longest(place.pattern().literal))
        let values = [longest: large, try place.key("empty"): [], try place.key("zero"): [0]]
        for _ in 0..<2 {
            try keyspace.apply(values.map { .set($0.key, $0.value) })
            for (key, value) in values {
                let found = try entry(key, judge).value
                try judge.expect(
                    found == value,
                    "a value of \(value.count) bytes is read as another of \(found.count) bytes"
                )
            }
        }
    }

    func checkListing(_ place: ContractPlace, _ judge: Judge) throws {
        var random = ContractRandom(seed: seed)
        let names = Set(
            (0..<120).map { _ in
                random.chance(40)
                    ? "d/\(random.number(below: 90))" : "\(random.number(below: 900))ü"
            }
        )
        let keys = try names.map { try place.key($0) }.sorted()
        try keyspace.apply(keys.map { .set($0, $0.bytes) })
        for (name, count) in [("", 1), ("", 7), ("", 1_000), ("d/", 3), ("*1*", 2)] {
            let pattern = try place.pattern(name)
            let expected = keys.filter { pattern.matches($0) }
            try judge.expectEqual(try list(pattern, by: count, judge), expected, "'\(pattern)'")
        }
        try judge.expectEqual(
            try keyspace.entries(place.pattern(), after: nil, limit: 0).count,
            0,
            "the number of entries below a limit of 0"
        )
    }

    private func list(_ pattern: Pattern, by count: Int, _ judge: Judge) throws -> [Key] {
        var found: [Key] = []
        while true {
            let page = try keyspace.entries(pattern, after: found.last, limit: count)
            try judge.expect(page.count <= count, "a page of \(count) has \(page.count) entries")
            for (key, entry) in page {
                try judge.expectEqual(entry.value, key.bytes, "the value of '\(key)'")
                try judge.expect(
                    found.last.map { $0 < key } ?? true,
                    "'\(key)' is listed after '\(found.last ?? key)'"
                )
                found.append(key)
            }
            if page.count < count { return found }
        }
    }

    func entry(_ key: Key, _ judge: Judge) throws -> Entry {
        if let entry = try keyspace.entry(for: key) { return entry }
        throw ContractViolation(judge.rule, "'\(key)' is absent")
    }
}
