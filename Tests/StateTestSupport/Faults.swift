import CFaultVFS
import Glibc

/// The disk below a directory, as SQLite meets it there: it loses power, fails and fills up as it is told to.
///
/// Any thread may use it: all of its state is the plan's, under the plan's lock. That is the proof of `@unchecked Sendable`.
package final class Faults: @unchecked Sendable {
    private let plan: OpaquePointer

    /// What a store does to its files.
    package enum Operation: String, CaseIterable, Sendable {
        case open, write, sync, truncate, delete

        fileprivate var raw: faults_operation {
            switch self {
            case .open: FAULTS_OPEN
            case .write: FAULTS_WRITE
            case .sync: FAULTS_SYNC
            case .truncate: FAULTS_TRUNCATE
            case .delete: FAULTS_DELETE
            }
        }
    }

    /// Which files are meant.
    package struct Files: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let database = Files(rawValue: Int(FAULTS_DATABASE))
        package static let log = Files(rawValue: Int(FAULTS_LOG))
        package static let journal = Files(rawValue: Int(FAULTS_JOURNAL))
        package static let any = Files(rawValue: Int(FAULTS_ANY_FILE))
    }

    /// What else there is to a failure.
    package struct Manner: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }

        /// Each one from there on fails.
        package static let lasting = Manner(rawValue: Int(FAULTS_LASTS))
        /// Half of the write is done.
        package static let short = Manner(rawValue: Int(FAULTS_IS_SHORT))
        /// Some of what was to be synced is gone, at once, and the rest is on disk.
        package static let reverting = Manner(rawValue: Int(FAULTS_REVERTS))
    }

    /// Begins with a disk that works, for everything that SQLite opens below `directory` from now on.
    package init(below directory: String) throws {
        let code = faults_register()
        guard code == 0, let plan = faults_begin(directory) else {
            throw SystemFailure("the fault VFS cannot be registered: SQLite code \(code)")
        }
        self.plan = plan
    }

    deinit { faults_end(plan) }

    /// How many operations have begun: the place of what is told now.
    ///
    /// What was told at a place before a power cut's was told before it.
    package var place: Int64 { faults_place(plan) }

    /// How many operations of one kind have begun.
    package func count(of operation: Operation) -> Int64 { faults_count(plan, operation.raw) }

    /// How many operations were made to fail.
    package var failedCount: Int64 { faults_failed_count(plan) }

    /// Makes the `number`th such operation from now fail, the next one being 1.
    ///
    /// - Parameters:
    ///   - operation: What fails; there is one fault for each, and the last one that was asked for counts.
    ///   - number: Counts those on `files` only.
    ///   - files: Where it fails.
    ///   - error: EIO or ENOSPC.
    ///   - manner: What else there is to it.
    package func fail(
        _ operation: Operation,
        number: Int64 = 1,
        of files: Files = .any,
        with error: Int32 = EIO,
        _ manner: Manner = []
    ) {
        let (files, manner) = (Int32(files.rawValue), Int32(manner.rawValue))
        faults_fail(plan, operation.raw, number, files, error, manner)
    }

    /// Lets everything succeed.
    package func heal() { faults_heal(plan) }

    /// Copies what a loss of power would leave when the operation at `place` begins to `directory`, which is made.
    package func cutPower(at place: Int64, leaving directory: String, seed: UInt64) throws {
        guard faults_cut(plan, place, directory, seed) == 0 else {
            throw SystemFailure(call: "cut", ENOMEM)
        }
    }

    /// How many of the power cuts that were asked for have been taken.
    package var cutCount: Int64 { faults_cut_count(plan) }
}
