import StateEngine

/// A store while it is open, with its expected contents.
struct ContractStore {
    let backing: any Backing
    let loaded: LoadedStore
    var history: ContractHistory

    /// Opens and loads a store.
    init(_ contract: BackingContract) throws {
        var found: [ContractHistory.Change] = []
        backing = try contract.open()
        loaded = try backing.load { found.append(.init($0)) }
        history = ContractHistory(found, revision: loaded.revision, seed: contract.seed)
    }

    /// Commits the transactions as one batch.
    func commit(_ transactions: [[ContractHistory.Change]]) throws {
        try BuiltBatch(transactions.flatMap(\.self)).commit(to: backing)
    }

    /// What the next start must find; it retains no reference to the backing.
    var left: Left { Left(epoch: loaded.epoch, history: history) }

    /// Closes the store, opens it again, and compares.
    func closeAndCheck(_ contract: BackingContract, _ judge: Judge) throws {
        backing.close()
        try left.checkNext(contract, judge)
    }

    /// What a start must find.
    struct Left {
        let epoch: Epoch
        let history: ContractHistory

        func checkNext(_ contract: BackingContract, _ judge: Judge) throws {
            let next = try ContractStore(contract)
            next.backing.close()
            try checkIdentity(next.loaded, contract.keeping, judge)
            let found = next.history.changes
            switch contract.keeping {
            case .history: try check(found, judge)
            case .values:
                try checkOrder(found, judge)
                try check(next.history.values, judge)
            case .nothing:
                try judge.expectEqual(found.count, 0, "the number of changes")
            }
        }

        func checkIdentity(
            _ loaded: LoadedStore,
            _ keeping: BackingContract.Keeping,
            _ judge: Judge
        ) throws {
            switch keeping {
            case .history: try judge.expectEqual(loaded.epoch, epoch, "the epoch")
            case .nothing:
                try judge.expect(loaded.epoch != epoch, "the epoch is still \(epoch)")
            case .values: break
            }
            try judge.expect(
                loaded.epoch != epoch || loaded.revision >= history.lastRevision,
                "the revision is \(loaded.revision) after \(history.lastRevision)"
            )
        }

        /// Checks that every change is as it was committed.
        private func check(_ found: [ContractHistory.Change], _ judge: Judge) throws {
            let expected = history.changes
            for (index, change) in zip(found, expected).enumerated() where change.0 != change.1 {
                throw ContractViolation(
                    judge.rule,
                    "change \(index) of \(expected.count) is \(change.0.shown), "
                        + "not \(change.1.shown)"
                )
            }
            let first = expected.dropFirst(found.count).first.map { ", without \($0.shown)" } ?? ""
            try judge.expect(
                found.count == expected.count,
                "it passes on \(found.count) changes, not \(expected.count)\(first)"
            )
        }

        /// Checks that the changes of each key are in order.
        private func checkOrder(_ found: [ContractHistory.Change], _ judge: Judge) throws {
            var earlier: [[UInt8]: ContractHistory.Change] = [:]
            for later in found {
                if let earlier = earlier.updateValue(later, forKey: later.key) {
                    try judge.expect(
                        (earlier.revision, earlier.ordinal) < (later.revision, later.ordinal),
                        "\(later.shown) comes after \(earlier.shown)"
                    )
                }
            }
        }

        private func check(_ found: [[UInt8]: [UInt8]], _ judge: Judge) throws {
            let expected = history.values
            for key in Set(found.keys).union(expected.keys) where found[key] != expected[key] {
                let name = key.withUnsafeBytes { StateError.quoted($0) }
                func shown(_ value: [UInt8]?) -> String {
                    value.map { $0.withUnsafeBytes { StateError.quoted($0) } } ?? "absent"
                }
                throw ContractViolation(
                    judge.rule,
                    "key \(name) is \(shown(found[key])), not \(shown(expected[key]))"
                )
            }
        }
    }
}
