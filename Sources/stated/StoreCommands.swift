import CLinux
import Glibc
import StateEngine
import StateSQLite
import StateSalvage

/// Operations on a store without serving it.
enum StoreCommands {
    /// `--check`: prints the problems, then a summary.
    ///
    /// - Returns: Whether there is no problem.
    /// - Throws: why the store could not be checked.
    static func check(
        _ store: String,
        _ print: @escaping (String) -> Void
    ) throws(StateError) -> Bool {
        let progress = Progress("checked")
        let summary = try progress.during {
            try StoreCheck(store: store, report: print, progress: progress.show).run()
        }
        let count = summary.findingCount
        if count > StoreCheck.findingLimit { print("and \(count - StoreCheck.findingLimit) more") }
        let found = found(summary.rowCount, summary.entryCount, summary.revision)
        guard count > 0 else {
            print("\(found): nothing is wrong")
            return true
        }
        print(
            "\(found): \(counted(count, "problem")); `stated --salvage --data \(store) "
                + "--to NEWDIRECTORY` copies what is intact"
        )
        return false
    }

    /// `--salvage`: prints what is lost, then a summary.
    ///
    /// - Returns: Whether every row was intact.
    /// - Throws: why there is no new store.
    static func salvage(
        _ store: String,
        to target: String,
        _ print: @escaping (String) -> Void
    ) throws(StateError) -> Bool {
        clinux_remove_drafts_on_signals()
        let progress = Progress("copied")
        let (report, show) = (print, progress.show as (Int64) -> Void)
        let summary = try progress.during {
            try StoreSalvage(store: store, target: target, report: report, progress: show).run()
        }
        let found = found(summary.rowCount, summary.entryCount, summary.revision)
        let verdict =
            switch (summary.hasAllRows, summary.isCounted, summary.lostRowCount) {
            case (true, _, _): "every row was intact"
            case (false, true, 1): "1 row is lost"
            case (false, true, let count): "\(count) rows are lost"
            case (false, false, 0): "rows may be lost"
            case (false, false, let count): "rows are lost, at least \(count)"
            }
        let handlers =
            summary.hasAllRows && !summary.isWhole
            ? ", but positions of handlers are lost (see statectl handlers)" : ""
        print("\(found): \(verdict)\(handlers); the new store is in \(target)")
        return summary.isWhole
    }

    /// `--restore`: prints a summary.
    ///
    /// - Throws: why there is no new store.
    static func restore(
        _ files: [String],
        to target: String,
        _ print: (String) -> Void
    ) throws(StateError) {
        clinux_remove_drafts_on_signals()
        let progress = Progress("restored")
        let restore = StoreRestore(files: files, target: target, progress: progress.show)
        let summary = try progress.during { try restore.run() }
        let found = found(summary.rowCount, summary.entryCount, summary.backupRevision)
        print(
            "\(found): the new store is in \(target); it continues under a new epoch after revision "
                + "\(summary.revision)"
        )
    }

    private static func found(_ rowCount: Int64, _ entryCount: Int, _ revision: Int64) -> String {
        "rows \(rowCount), entries \(entryCount), revision \(revision)"
    }
}

/// A line on a terminal that shows progress once an operation takes more than a second.
final class Progress {
    private let verb: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let start = ContinuousClock.now
    private var next = Duration.seconds(1)

    init(_ verb: String) { self.verb = verb }

    /// Shows the number of rows, at most five times a second.
    func show(_ rowCount: Int64) { show("\(rowCount) rows") }

    /// Shows a text, at most five times a second.
    func show(_ text: String) {
        let time = ContinuousClock.now - start
        guard isTerminal, time >= next else { return }
        next = time + .milliseconds(200)
        write("\r\u{1B}[K\(verb) \(text)")
    }

    /// Runs `body`, which reports to this, and clears the line.
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

    /// Clears the line.
    func clear() {
        if next > .seconds(1) { write("\r\u{1B}[K") }
        next = .seconds(1)
    }

    private func write(_ text: String) {
        _ = Glibc.write(STDERR_FILENO, text, text.utf8.count)
    }
}
