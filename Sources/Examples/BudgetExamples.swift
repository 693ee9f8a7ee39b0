import StateClient
import StateContainers
import StateSQLite

extension Example {
    static let budget = Example(
        name: "budget",
        summary: "an aggregate root: a budget whose payments are validated, in SQLite"
    ) { checks in
        let scratch = try Scratch()
        let database = try await SQLiteDatabase(path: scratch.path(of: "budget.db"))
        try Budget.script(checks) { key, new in try SQLiteState(new, key: key, in: database) }
    }

    static let budgetEverywhere = Example(
        name: "budget-everywhere",
        summary: "tests with the real database: one script on a SQLite file and on the daemon",
        needs: .daemon
    ) { checks in
        print("  on a SQLite file")
        try await budget.run(checks)
        print("  on the daemon")
        let keyspace = try RemoteKeyspace.shared()
        let place = "examples/budget-everywhere"
        defer { _ = try? statectl("delete", "\(place)/") }
        try statectl("delete", "\(place)/")
        try Budget.script(checks) { key, new in
            try RemoteState(new, key: Key("\(place)/\(key)"), in: keyspace)
        }
    }
}
