import StateContainers
import StateSQLite

extension Budget {
    static let all = StateQuery("budget/", as: Budget.self).sorted(by: \.dateCreated, .reverse)
}

extension Example {
    static let liveQuery = Example(
        name: "live-query",
        summary: "budgets that keep current, the newest first: declared once"
    ) { checks in
        let scratch = try Scratch()
        let database = try await SQLiteDatabase(path: scratch.path(of: "budget.db"))
        func container(_ name: String, created: Int) throws -> SQLiteState<Budget> {
            let new = Budget(name: name, limit: 100, dateCreated: created)
            return try SQLiteState(new, key: Key("budget/\(name)"), in: database)
        }
        let (food, travel) = (
            try container("food", created: 1), try container("travel", created: 2)
        )
        try await food ~> { $0.limit = 200 }
        let budgets = try await database.keyspace.query(Budget.all)
        var lists = budgets.values.makeAsyncIterator()
        func next(_ count: Int) async -> [String]? {
            while let rows = await lists.next() {
                if rows.count == count { return rows.map(\.value.name) }
            }
            return nil
        }
        checks.expect(await next(1) == ["food"], "stored values are there at once")
        try await travel ~> { $0.limit = 300 }
        checks.expect(await next(2) == ["travel", "food"], "a new one comes first: it is newer")
        try await database.keyspace.apply([
            .set("other/x", Array("1".utf8)), .delete("budget/travel"),
        ])
        checks.expect(await next(1) == ["food"], "a deleted one disappears")
        try await withTransaction { tx in
            tx[travel] = Budget(name: "travel", limit: 1, dateCreated: 0)
            tx[food].limit = 1
        }
        checks.expect(await next(2) == ["food", "travel"], "two changes are one new list")
        checks.expect(budgets.rows.map(\.value.limit) == [1, 1], "the list has both changes")
    }
}
