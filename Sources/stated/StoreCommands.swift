import Glibc
import StateEngine
import StateSQLite
import StateSalvage

/// What is done to a store without serving it.
enum StoreCommands {
    /// `--check`: prints what is wrong, then a summary.
    ///
    /// - Returns: Whether nothing is wrong.
    /// - Throws: why nothing could be checked.
    static func check(
        _ store: String,
        _ print: @escaping (String) -> Void
    ) throws(StateError) -> Bool {
        let progress = Progress("checked")
        let check = StoreCheck(store: store, report: print, progress: progress.show)
        let summary = try progress.during { try check.run() }
        let count = summary.findingCount
        if count > StoreCheck.findingLimit { print("and \(count - StoreCheck.findingLimit) more") }
        let found = found(summary.rowCount, summary.entryCount, summary.revision)
        guard count > 0 else {
            print("\(found): nothing is wrong")
            return true
        }
        let wrong = count == 1 ? "1 thing is wrong" : "\(count) things are wrong"
        print(
            "\(found): \(wrong); `stated --salvage --data \(store) --to NEWDIRECTORY` copies what "
                + "is whole"
        )
        return false
    }

    /// `--salvage`: prints what is lost, then a summary.
    ///
    /// - Returns: Whether every row was whole.
    /// - Throws: why there is no new store.
    static func salvage(
        _ store: String,
        to target: String,
        _ print: @escaping (String) -> Void
    ) throws(StateError) -> Bool {
        let progress = Progress("copied")
        let salvage = StoreSalvage(
            store: store,
            target: target,
            report: print,
            progress: progress.show
        )
        let summary = try progress.during { try salvage.run() }
        let found = found(summary.rowCount, summary.entryCount, summary.revision)
        let verdict =
            switch (summary.hasAllRows, summary.isCounted, summary.lostRowCount) {
            case (true, _, _): "every row was whole"
            case (false, true, 1): "1 row is lost"
            case (false, true, let count): "\(count) rows are lost"
            case (false, false, 0): "rows may be lost"
            case (false, false, let count): "rows are lost, at least \(count)"
            }
        let notes =
            summary.hasAllRows && !summary.isWhole
            ? ", but what is noted of handlers is not (statectl handlers)" : ""
        print("\(found): \(verdict)\(notes); the new store is in \(target)")
        return summary.isWhole
    }

    private static func found(_ rowCount: Int64, _ entryCount: Int, _ revision: Int64) -> String {
        "rows \(rowCount), entries \(entryCount), revision \(revision)"
    }
}

/// A line on a terminal that says how far something is, once it takes more than a second.
final class Progress {
    private let verb: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let start = ContinuousClock.now
    private var next = Duration.seconds(1)

    init(_ verb: String) { self.verb = verb }

    /// Tells of so many rows, a few times a second.
    func show(_ rowCount: Int64) {
        let time = ContinuousClock.now - start
        guard isTerminal, time >= next else { return }
        next = time + .milliseconds(200)
        write("\r\(verb) \(rowCount) rows")
    }

    /// Runs what reports to it, and takes the line away.
    func during<R>(_ body: () throws -> R) throws(StateError) -> R {
        defer { clear() }
        do {
            return try body()
        } catch let error as StateError {
            throw error
        } catch {
            throw StateError(.storage, "\(error)")
        }
    }

    private func clear() {
        if next > .seconds(1) { write("\r\u{1B}[K") }
        next = .seconds(1)
    }

    private func write(_ text: String) {
        _ = Glibc.write(STDERR_FILENO, text, text.utf8.count)
    }
}
