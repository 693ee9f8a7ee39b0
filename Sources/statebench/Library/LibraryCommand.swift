import Glibc

/// Nanoseconds per operation of the containers, compared with a bare lock, a dispatch queue, SQLite itself
/// and a plain client.
///
/// Every turn measures each row once, in order; the medians are printed.
enum LibraryCommand {
    static func run(_ options: Options) throws(BenchError) {
        let turns = try options.number("turns", standard: 5)
        let operations = try options.number("operations", standard: 2_000_000)
        let commits = try options.number("commits", standard: 2_000)
        let place = options.text("directory", standard: "/var/tmp")
        let daemon = options.text("stated", standard: standardDaemon)
        let rows = try Rows.named(options.text("rows", standard: "all"))
        var table = LibraryTable()
        for _ in 0..<turns {
            if rows.contains(.memory) { MemoryRows.measure(operations, &table) }
            if rows.contains(.listening) { ListeningRows.measure(operations / 10, &table) }
            if rows.contains(.queries) { try PageRows.measure(&table) }
            if rows.contains(.arrays) { ArrayRows.measure(operations, &table) }
            if rows.contains(.durable) { try DurableRows.measure(commits, in: place, &table) }
            if rows.contains(.remote) {
                try RemoteRows.measure(commits / 10, in: place, daemon: daemon, &table)
            }
        }
        // Last: after the first scope, every container looks for its own.
        for _ in 0..<turns where rows.contains(.scopes) { ScopeRows.measure(operations, &table) }
        table.print()
        if rows.contains(.kept) { try KeptRows.measure(in: place) }
    }

    /// The `stated` beside this program.
    private static var standardDaemon: String {
        let path = realpath("/proc/self/exe", nil)
        defer { free(path) }
        let program = path.map { String(cString: $0) } ?? ""
        return program.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/stated"
    }

    private enum Rows: String, CaseIterable {
        case memory, listening, queries, arrays, durable, remote, scopes, kept

        /// The rows in a comma-separated list.
        static func named(_ list: String) throws(BenchError) -> Set<Rows> {
            guard list != "all" else { return Set(allCases) }
            var rows: Set<Rows> = []
            for name in list.split(separator: ",") {
                guard let row = Rows(rawValue: String(name)) else {
                    let names = allCases.map(\.rawValue).joined(separator: ",")
                    throw .usage("--rows expects some of \(names), not '\(name)'")
                }
                rows.insert(row)
            }
            return rows
        }
    }
}

/// The results: a row for each kind of work, with the result of each turn.
struct LibraryTable {
    /// A kind of work, and what it is compared with.
    struct Row {
        var title: String
        var nanoseconds: [Double] = []
        /// The title of the row to compare with.
        var base: String?
        /// The largest permitted ratio to the base's time, or nanoseconds if there is no base; nil:
        /// no bound.
        var bound: Double?
    }

    private var rows: [Row] = []

    /// Adds the result of one turn to the row with that title, which the first turn makes.
    mutating func add(
        _ title: String,
        _ nanoseconds: Double,
        beside base: String? = nil,
        atMost bound: Double? = nil
    ) {
        if let index = rows.firstIndex(where: { $0.title == title }) {
            rows[index].nanoseconds.append(nanoseconds)
        } else {
            rows.append(Row(title: title, nanoseconds: [nanoseconds], base: base, bound: bound))
        }
    }

    func print() {
        Swift.print(LibraryTable.line("work", "ns", "ratio", "bound", "beside"))
        for row in rows { Swift.print(line(of: row)) }
    }

    private func line(of row: Row) -> String {
        let median = row.nanoseconds.median
        let nanoseconds = "\(median.rounded(places: median < 1_000 ? 1 : 0))"
        let base = rows.first { $0.title == row.base }
        let ratio = base.map { median / $0.nanoseconds.median }
        let verdict = row.bound.map { bound in
            let isWithin = (ratio ?? median) <= bound
            return "<= \(bound.rounded(places: 2)) \(isWithin ? "ok" : "MISSED")"
        }
        return LibraryTable.line(
            row.title,
            nanoseconds,
            ratio.map { "\($0.rounded(places: 2))" } ?? "",
            verdict ?? "",
            base?.title ?? ""
        )
    }

    private static func line(_ columns: String...) -> String {
        let widths = [48, 12, 8, 16]
        var line = ""
        for (index, column) in columns.enumerated() {
            let width = index < widths.count ? widths[index] : 0
            let space = String(repeating: " ", count: max(0, width - column.count))
            // Numbers are right-aligned, words left-aligned.
            line += index == 0 ? column + space : index < 3 ? space + column : "  " + column
            if index == 3 { line += space }
        }
        while line.last == " " { line.removeLast() }
        return line
    }
}

extension [Double] {
    var median: Double {
        let sorted = sorted()
        let middle = count / 2
        return count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}

/// Runs `body` `count` times, and returns the nanoseconds for one.
///
/// Inlined with its body, so that the measured loop is one that a user of the library would write.
@inline(__always)
func nanoseconds<E: Error>(_ count: Int, _ body: (Int) throws(E) -> Void) throws(E) -> Double {
    let start = MonotonicClock.now
    for number in 0..<count { try body(number) }
    return Double(MonotonicClock.now - start) / Double(count)
}

/// Uses a result, so that it must be computed.
@inline(never)
func consume<Value>(_ value: Value) { withExtendedLifetime(value) {} }
