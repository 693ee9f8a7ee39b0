import StateEngine

/// The expected entries of a keyspace: a dictionary.
struct ContractModel {
    struct Held: Hashable {
        var value: [UInt8]
        var revision: Int64
        var created: Int64
        var version: Int64
    }

    private(set) var entries: [Key: Held] = [:]
    private var newest: Int64 = 0

    /// Makes the same changes, and compares the answer.
    mutating func take(
        _ mutations: [Mutation],
        _ answer: Result<Int64, StateError>,
        _ judge: Judge
    ) throws {
        let isRefused = mutations.contains { mutation in
            mutation.condition.map { $0 != entries[mutation.key]?.revision ?? 0 } ?? false
        }
        switch answer {
        case .success(let revision):
            try judge.expect(!isRefused, "\(mutations) was answered with \(revision)")
            let changes = mutations.contains { mutation in
                switch mutation {
                case .set: true
                case .delete(let key, _): entries[key] != nil
                case .check: false
                }
            }
            try judge.expect(
                changes ? revision > newest : revision >= newest,
                "revision \(revision) follows \(newest)"
            )
            newest = max(newest, revision)
            for mutation in mutations { change(mutation, at: revision) }
        case .failure(let error):
            try judge.expect(isRefused && error.code == .conflict, "\(mutations) failed: \(error)")
        }
    }

    private mutating func change(_ mutation: Mutation, at revision: Int64) {
        switch mutation {
        case .set(let key, let value, _, _):
            let old = entries[key]
            entries[key] = Held(
                value: value,
                revision: revision,
                created: old?.created ?? revision,
                version: (old?.version ?? 0) + 1
            )
        case .delete(let key, _): entries[key] = nil
        case .check: break
        }
    }

    func check(_ found: [Key: Entry], _ judge: Judge) throws {
        for key in Set(found.keys).union(entries.keys) {
            let held = found[key].map {
                Held(
                    value: $0.value,
                    revision: $0.revision,
                    created: $0.created,
                    version: $0.version
                )
            }
            try judge.expect(
                held == entries[key],
                "'\(key)' is \(shown(held)), not \(shown(entries[key]))"
            )
        }
    }

    private func shown(_ held: Held?) -> String { held.map { "\($0)" } ?? "absent" }
}

extension Mutation {
    fileprivate var key: Key {
        switch self {
        case .set(let key, _, _, _), .delete(let key, _), .check(let key, _): key
        }
    }

    fileprivate var condition: Int64? {
        switch self {
        case .set(_, _, let revision, _), .delete(_, let revision): revision
        case .check(_, let revision): revision
        }
    }
}

extension ContractRandom {
    /// A transaction over some keys, each once, with conditions of which some fail.
    mutating func mutations(_ place: ContractPlace, _ model: ContractModel) throws -> [Mutation] {
        let numbers = Set((0...number(below: 4)).map { _ in number(below: 30) }).sorted()
        return try numbers.map { number in
            let key = try place.key(number)
            let current = model.entries[key]?.revision ?? 0
            let condition = chance(8) ? current + 1 : chance(40) ? current : nil
            if let condition, chance(20) { return .check(key, revision: condition) }
            if chance(25) { return .delete(key, ifRevision: condition) }
            return .set(key, bytes(self.number(below: 40)), ifRevision: condition)
        }
    }
}
