import StateSQLite
import StateTesting

private struct Expense: Codable, Hashable, Sendable {
    var month: Int
    var cents: Int
}

extension Example {
    static let sections = Example(
        name: "query-sections",
        summary: "rows that are inserted, changed and deleted by id; a page, sections and a sum"
    ) { checks in
        let database = SQLiteDatabase.inMemory
        let keyspace = database.keyspace
        let all = StateQuery("pay/", as: Expense.self).sorted(by: \.cents, .reverse)
        let expenses = try await keyspace.query(all)
        let largest = try await keyspace.query(all.limit(2))
        let months = try await keyspace.query(all.sectioned(by: \.month))
        for (name, month, cents) in [("rent", 1, 900), ("tea", 1, 3), ("car", 2, 400)] {
            try await expenses.insert(Expense(month: month, cents: cents), id: Key("pay/\(name)"))
        }
        checks.expect(expenses.sum(of: \.cents) == 1_303, "the sum of all rows")
        checks.expect(largest.rows.map(\.value.cents) == [900, 400], "the two largest")
        checks.expect(largest.count == 3, "of three")
        checks.expect(months.sections.map(\.rows.count) == [2, 1], "a section for each month")
        try await expenses.update(id: "pay/tea") { $0.month = 2 }
        try await expenses.delete(id: "pay/car")
        checks.expect(months.sections.map(\.id) == [1, 2], "a changed row moves to its section")
        checks.expect(expenses.sum(of: \.cents) == 903, "the sum follows")
        withExtendedLifetime(database) {}
    }

    static let migrations = Example(
        name: "migrations",
        summary: "a value in three versions, and a test that runs all migrations"
    ) { checks in
        let codec = StateCodec<Expense>.versioned(
            3,
            migrations: [
                StateMigration(from: 1) { $0 = .object(["euros": $0]) },
                StateMigration(from: 2) { value in
                    guard case .object(let old) = value, case .number(let euros)? = old["euros"]
                    else { return }
                    value = .object(["month": .number("0"), "cents": .number("\(euros)00")])
                },
            ]
        )
        let test = MigrationTest(
            codec,
            current: 3,
            samples: [
                1: "5", 2: #"{"$version":2,"euros":5}"#,
                3: #"{"$version":3,"month":0,"cents":500}"#,
            ]
        ) { $0 == Expense(month: 0, cents: 500) }
        try test.check()
        checks.expect(true, "each version becomes the same value")
    }
}
