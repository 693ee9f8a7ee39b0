import CLinux
import Glibc
import StateEngine
import StateSQLite
import StateSystem

/// The new settled store of a salvage or a restore, which is created as a whole.
///
/// It is written beside its location, opened and checked there, and moved when everything in it is on
/// disk: first the log, then the database, without which nobody opens the store. Unless ``keep()`` is
/// called, everything that was made is removed again, while the lock is still held: what others put
/// there meanwhile stays.
final class NewStore {
    private let location: StoreLocation
    private let draft: StoreLocation
    private let directory: NewDirectory
    private let lock: OwnerLock
    private var phase = Phase.draft

    /// Which of its files have their names.
    private enum Phase {
        case draft
        case placedLog
        case placed
        case kept
    }

    /// Takes a directory, and makes it if it is missing.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - isNew: Refuses one that exists.
    /// - Throws: ``StateError/Code/storage`` if there is a store already, or none can be made;
    ///   ``StateError/Code/locked`` if another process is about to make one there.
    init(directory path: String, isNew: Bool = false) throws {
        location = StoreLocation(directory: path)
        draft = StoreLocation(path: location.unfinished)
        let exists = access(path, F_OK) == 0
        directory = try NewDirectory(path: path, isNew: isNew || !exists)
        do throws(StateError) {
            try location.prepare()
            lock = try OwnerLock(path: location.lock, for: location.database)
        } catch {
            directory.removeIfOwn()
            throw error
        }
        for path in [location.database, location.log, location.logDirectory]
        where access(path, F_OK) == 0 {
            phase = .kept
            throw StateError(
                .storage,
                "there is a store in \(location.directory) already: \(path)"
            )
        }
        removeDraft()
        removeOnSignal()
        try markUnfinished()
    }

    /// From here on, no daemon begins an empty store in the directory, also if this process is killed
    /// while it waits for what it restores.
    private func markUnfinished() throws(StateError) {
        let mark = draft.database + ".new"
        let file = openat(
            directory.descriptor,
            mark.fileName,
            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
            0o600
        )
        guard file >= 0 else {
            throw StateError(.storage, "\(mark) cannot be created: \(lastSystemError())")
        }
        close(file)
    }

    deinit { if phase != .kept { discard() } }

    /// With which names of files may begin that are needed meanwhile, and are removed by ``StoreRemains``.
    var scratch: String { location.unfinished }

    /// Begins the store; once in its life.
    ///
    /// - Parameter base: From this revision on all of the past will be in it.
    /// - Returns: What takes the rows and the changes.
    /// - Throws: ``StateError`` if it cannot be written.
    func makeDraft(base: Int64) throws -> StoreDraft {
        try StoreDraft(at: draft, log: location.unfinishedLog, base: base, under: lock)
    }

    // MARK: Removing

    private var draftNames: [String] {
        (draft.draftFiles + StoreRemains.files(scratch)).map(\.fileName)
    }

    private var logNames: [String] {
        [location.unfinishedLog]
            + (phase == .placedLog || phase == .placed ? [location.logDirectory] : [])
    }

    private var names: [String] {
        let placed = phase == .placed ? [location.database, location.log, location.logIndex] : []
        // Nobody waits for the lock: a process that finds it taken ends.
        return draftNames + (placed + (directory.isOwn ? [location.lock] : [])).map(\.fileName)
    }

    private func removeOnSignal() {
        directory.removeOnSignal(names, directories: logNames.map(\.fileName))
    }

    private func removeDraft() {
        directory.remove(draftNames)
        directory.remove(directories: [location.unfinishedLog.fileName])
    }

    private func discard() {
        directory.remove(directories: logNames.map(\.fileName))
        directory.remove(names)
        directory.removeIfOwn()
        clinux_forget_drafts()
    }

    // MARK: Opening

    /// Opens the store as a daemon does, and closes it, which settles it; the draft must be finished and
    /// released.
    ///
    /// - Parameter receive: Called with each change, as by `SQLiteBacking.load`.
    /// - Returns: What the store says of itself.
    /// - Throws: ``StateError/Code/corrupt`` if it is not sound, or why it cannot be opened.
    func open(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        var options = SQLiteBacking.Options()
        // Nothing is dropped: who opens it next decides how much of the past is kept.
        options.history.changeCount = .max
        options.history.byteCount = .max
        options.history.age = .seconds(1 << 60)
        options.settling.hasThread = false
        let backing = SQLiteBacking(draft, log: location.unfinishedLog, options)
        let finding = StateLock<String?>(nil)
        backing.reports.finding = { text in finding.withLock { $0 = text } }
        let loaded = try backing.load(receive)
        backing.close()
        if let text = finding.withLock({ $0 }) {
            throw backing.shortage == nil ? unsound(text) : StateError(.noSpace, text)
        }
        return loaded
    }

    /// Checks what was written.
    ///
    /// - Throws: ``StateError/Code/corrupt`` if it is not sound, or why it cannot be checked.
    func check(_ progress: @escaping (Int64) -> Void) throws -> StoreCheck.Summary {
        var first: String?
        let check = StoreCheck(
            draft,
            log: location.unfinishedLog,
            under: lock,
            { first = first ?? $0 },
            progress
        )
        let found = try check.run()
        if let first { throw unsound(first) }
        return found
    }

    private func unsound(_ finding: String) -> StateError {
        StateError(
            .corrupt,
            "the store in \(location.directory) is not what was written to it: \(finding)"
        )
    }

    // MARK: The end

    /// Puts the store into its place, durably; it stays from now on.
    func keep() throws {
        directory.remove([draft.lock.fileName])
        try rename(location.unfinishedLog, location.logDirectory, then: .placedLog)
        guard sync(draft.database.fileName) else { throw cannotPlace }
        try rename(draft.database, location.database, then: .placed)
        guard directory.sync() else { throw cannotPlace }
        try directory.syncName()
        clinux_forget_drafts()
        phase = .kept
    }

    private func rename(_ path: String, _ other: String, then next: Phase) throws(StateError) {
        guard directory.rename(path.fileName, other.fileName) else { throw cannotPlace }
        phase = next
        removeOnSignal()
    }

    private var cannotPlace: StateError {
        StateError(.storage, "\(location.database) cannot be created: \(lastSystemError())")
    }

    private func sync(_ name: String) -> Bool {
        let descriptor = openat(directory.descriptor, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }
}

extension String {
    /// What follows the last slash.
    fileprivate var fileName: String {
        lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? self
    }
}
