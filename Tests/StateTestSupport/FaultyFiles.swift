import Glibc
package import StateLog
import StateModel

/// The files of a log whose calls come one at a time, and of which a test makes some fail.
///
/// Any thread may use it.
package final class FaultyFiles: LogFiles, @unchecked Sendable {
    package enum Call: CaseIterable, Sendable {
        case write, sync
        /// Whatever makes, opens, renames and removes files, and looks at them.
        case other
    }

    private struct Failure {
        let call: Call
        /// Which of the calls of this kind.
        let number: Int
        let code: Int32
        let isTorn: Bool
        let isLasting: Bool
    }

    private let files: any LogFiles
    private let lock: UnsafeMutablePointer<pthread_mutex_t> = .allocate(capacity: 1)
    private var counts: [Call: Int] = [:]
    private var failures: [Failure] = []
    private var failed = 0
    private var all = 0
    private var listener: (Int) -> Void = { _ in }

    /// - Parameter files: Those of a directory, or simulated ones, on which a sync that fails leaves any of
    ///   what was to be synced undone and calls all of it clean.
    package init(_ files: any LogFiles) {
        self.files = files
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_RECURSIVE))
        pthread_mutex_init(lock, &attributes)
    }

    deinit { lock.deallocate() }

    private func locked<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body()
    }

    // MARK: The test's side

    /// How many calls were begun.
    package var callCount: Int { locked { all } }
    /// How many calls failed.
    package var failedCount: Int { locked { failed } }

    package func count(of call: Call) -> Int { locked { counts[call] ?? 0 } }

    /// Called before each call with its number, while no other call goes on.
    package func onCall(_ body: @escaping (Int) -> Void) { locked { listener = body } }

    /// Makes a coming call fail: the `number`th of its kind from now on.
    ///
    /// - Parameters:
    ///   - call: Its kind.
    ///   - number: Which one.
    ///   - code: The error.
    ///   - isTorn: Whether a write that fails writes a part.
    ///   - isLasting: Whether all after it fail, too, until ``heal()``.
    package func fail(
        _ call: Call,
        number: Int = 1,
        with code: Int32 = EIO,
        isTorn: Bool = false,
        isLasting: Bool = false
    ) {
        locked {
            failures.append(
                Failure(
                    call: call,
                    number: (counts[call] ?? 0) + number,
                    code: code,
                    isTorn: isTorn,
                    isLasting: isLasting
                )
            )
        }
    }

    /// Nothing fails any more.
    package func heal() { locked { failures = [] } }

    /// Runs `body` while no call goes on.
    package func paused<R>(_ body: () throws -> R) rethrows -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body()
    }

    // MARK: Calls

    fileprivate func perform<R>(
        _ call: Call,
        _ name: StaticString,
        _ file: String,
        _ body: () throws(LogFileFailure) -> R
    ) throws(LogFileFailure) -> R {
        try locked { () throws(LogFileFailure) in
            all += 1
            listener(all)
            let number = (counts[call] ?? 0) + 1
            counts[call] = number
            let due = failures.first { failure in
                failure.call == call
                    && (failure.isLasting ? number >= failure.number : number == failure.number)
            }
            guard let due else { return try body() }
            failed += 1
            guard let simulated = files as? SimulatedFiles else {
                throw LogFileFailure(name, file, due.code)
            }
            simulated.fault = { _ in due.isTorn ? .tears(due.code) : .refuses(due.code) }
            defer { simulated.fault = { _ in nil } }
            return try body()
        }
    }

    package func names() throws(LogFileFailure) -> [String] {
        try perform(.other, "readdir", ".") { () throws(LogFileFailure) in try files.names() }
    }

    package func open(_ name: String) throws(LogFileFailure) -> any LogFile {
        try perform(.other, "open", name) { () throws(LogFileFailure) in
            File(self, name, try files.open(name))
        }
    }

    package func create(_ name: String) throws(LogFileFailure) -> any LogFile {
        try perform(.other, "open", name) { () throws(LogFileFailure) in
            File(self, name, try files.create(name))
        }
    }

    package func rename(_ name: String, to new: String) throws(LogFileFailure) {
        try perform(.other, "rename", name) { () throws(LogFileFailure) in
            try files.rename(name, to: new)
        }
    }

    package func remove(_ name: String) throws(LogFileFailure) {
        try perform(.other, "unlink", name) { () throws(LogFileFailure) in try files.remove(name) }
    }

    package func syncNames() throws(LogFileFailure) {
        try perform(.sync, "sync", ".") { () throws(LogFileFailure) in try files.syncNames() }
    }

    package var isCopyOnWrite: Bool { files.isCopyOnWrite }

    package func availableByteCount() -> Int64? { locked { files.availableByteCount() } }

    package func hasRoom(for byteCount: Int64) -> Bool {
        locked { files.hasRoom(for: byteCount) }
    }

    package func finding(among files: [(name: String, file: any LogFile)]) -> String? {
        let own = files.map { ($0.name, ($0.file as? File)?.file ?? $0.file) }
        return locked { self.files.finding(among: own) }
    }

    private final class File: LogFile {
        private let files: FaultyFiles
        private let name: String
        let file: any LogFile

        init(_ files: FaultyFiles, _ name: String, _ file: any LogFile) {
            (self.files, self.name, self.file) = (files, name, file)
        }

        func byteCount() throws(LogFileFailure) -> Int {
            try files.perform(.other, "stat", name) { () throws(LogFileFailure) in
                try file.byteCount()
            }
        }

        func read(
            _ target: UnsafeMutableRawBufferPointer,
            at offset: Int
        ) throws(LogFileFailure) -> Int {
            try files.perform(.other, "read", name) { () throws(LogFileFailure) in
                try file.read(target, at: offset)
            }
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileFailure) {
            try files.perform(.write, "write", name) { () throws(LogFileFailure) in
                try file.write(bytes, at: offset)
            }
        }

        func setByteCount(_ byteCount: Int) throws(LogFileFailure) {
            try files.perform(.write, "truncate", name) { () throws(LogFileFailure) in
                try file.setByteCount(byteCount)
            }
        }

        func sync() throws(LogFileFailure) {
            try files.perform(.sync, "sync", name) { () throws(LogFileFailure) in try file.sync() }
        }
    }
}
