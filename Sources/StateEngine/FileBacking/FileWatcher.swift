import CLinux
import StatePlatform
import StateSystem
import Synchronization

/// Detects edits by others in the directory, by inotify(7), on a thread of its own; the commit
/// thread reads the places that it reports.
///
/// On Darwin it looks at all places each second instead.
///
/// A place is reported once nothing has happened there for a while, so that a file is not read
/// while it is being written.
final class FileWatcher: Sendable {
    /// A place that may have changed.
    struct Place: Hashable {
        var path: FilePath
        /// Whether everything below it may have changed, too.
        var isTree = false
        /// Whether bytes of the file itself were written, or its mode changed: renames by this
        /// process do neither.
        var isWritten = true
    }

    struct State {
        /// When each place is due, in nanoseconds of CLOCK_MONOTONIC.
        var due: [FilePath: (place: Place, time: Int64)] = [:]
        /// Places that were taken and are being looked at.
        var taken: [FilePath: Place] = [:]
        /// When the last file or directory was removed, on the monotonic clock.
        var removedAt: Int64 = .min
        /// How many threads are reading events that they have not recorded yet.
        var readerCount = 0
        var wake: @Sendable () -> Void = {}
        /// The watched directories; changed by the thread that reads events.
        var directories: [Int32: FilePath] = [:]
        /// The directories that could not be watched.
        var unwatched: [FilePath: Unwatched] = [:]
    }

    /// Why a directory is not watched.
    struct Unwatched {
        var error: StateError
        /// Whether it was reported.
        var isReported = false
    }

    static let quietNanoseconds: Int64 = 100_000_000
    /// How often directories that cannot be watched are checked.
    private static let probeNanoseconds: Int64 = 5_000_000_000
    /// Above this number of places, the whole tree is due.
    private static let placeLimit = 65_536
    /// At most this many directories are watched: all programs of a user share his watches.
    static let directoryLimit = 65_536

    let tree: FileTree
    let queue: Int32
    /// Makes the thread check again.
    private let bell: Int32
    private let isStopping = Atomic(false)
    let state = StateLock(State())
    /// Held while reading events, so that they are recorded before another thread reads more.
    let reading = StateLock(())
    private let thread = WorkerThread(name: "files")

    init(_ tree: FileTree) throws(StateError) {
        self.tree = tree
        queue = FileWatcher.makeQueue()
        bell = clinux_eventfd()
        guard queue >= 0, bell >= 0 else {
            let reason = lastSystemError()
            for descriptor in [queue, bell] where descriptor >= 0 { close(descriptor) }
            throw FileWatcher.refusal(tree.location, reason)
        }
        add(.root)
    }

    deinit {
        close(queue)
        close(bell)
    }

    func start() { thread.start { self.run() } }

    /// Ends the thread; nothing is reported afterwards.
    func stop() {
        state.withLock { $0.wake = {} }
        isStopping.store(true, ordering: .releasing)
        ring()
        thread.join()
    }

    func setWake(_ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.wake = wake }
        wake()
    }

    /// The places that are due now, and directories that cannot be watched, once each.
    func takeDue() -> (places: [Place], failures: [(FilePath, StateError)]) {
        let now = clinux_monotonic_nanoseconds()
        return state.withLock { state in
            let places = state.due.values.filter { $0.time <= now }.map(\.place)
            for place in places {
                state.due[place.path] = nil
                state.taken[place.path] = place
            }
            let unreported = state.unwatched.filter { !$0.value.isReported }
            for path in unreported.keys { state.unwatched[path]?.isReported = true }
            return (places, unreported.map { ($0.key, $0.value.error) })
        }
    }

    /// Directories that are only checked for edits periodically, and why.
    var unwatched: [FilePath: StateError] {
        state.withLock { $0.unwatched.mapValues(\.error) }
    }

    /// The taken places were read, and what was found is recorded.
    func finishLook() {
        state.withLock { if !$0.taken.isEmpty { $0.taken = [:] } }
    }

    /// Schedules places to be read after another quiet time, or after some other nanoseconds.
    func note(_ places: [Place], after nanoseconds: Int64 = FileWatcher.quietNanoseconds) {
        guard !places.isEmpty else { return }
        add(places, after: nanoseconds)
        ring()
    }

    private func ring() {
        clinux_signal_event(bell)
    }

    /// The same without waking the thread, for the thread that reads events.
    func add(_ places: [Place], after nanoseconds: Int64 = FileWatcher.quietNanoseconds) {
        let time = clinux_monotonic_nanoseconds() + nanoseconds
        state.withLock { state in
            for place in places {
                var place = place
                if let known = state.due[place.path]?.place {
                    place.isTree = place.isTree || known.isTree
                    place.isWritten = place.isWritten || known.isWritten
                }
                state.due[place.path] = (place, time)
            }
            if state.due.count > FileWatcher.placeLimit {
                let all = Place(path: .root, isTree: true, isWritten: true)
                state.due = [.root: (all, time)]
            }
        }
    }

    // MARK: Whether anything has changed

    /// Whether there are places that are not quiet yet.
    var isMoving: Bool { state.withLock { !$0.due.isEmpty } }

    /// When the last file or directory was removed, on the monotonic clock.
    var removedAt: Int64 { state.withLock { $0.removedAt } }

    /// Whether others may have changed the file at `path`, or any file if it is nil, and that is
    /// not known yet.
    ///
    /// Reads no file: the kernel has queued the event of a change before the call that made it
    /// returns. So everything that somebody did before asking is seen here.
    func mayHaveChanged(_ path: FilePath?) -> Bool {
        var events = pollfd(fd: queue, events: Int16(POLLIN), revents: 0)
        // Order matters: events are either still queued, or being recorded, or recorded.
        if poll(&events, 1, 0) > 0 { return true }
        return state.withLock { state in
            if state.readerCount > 0 { return true }
            if state.due.isEmpty, state.taken.isEmpty { return false }
            guard let path else { return true }
            if state.due[path] != nil || state.taken[path] != nil { return true }
            return path.ancestors.contains { above in
                state.due[above] != nil || state.taken[above] != nil
            }
        }
    }

    /// Discards events of this process's own renames, if `isOurs` returns true for the place.
    func forgetOwn(_ paths: [FilePath], where isOurs: (FilePath) -> Bool) {
        readEvents()
        for path in paths {
            let noted = state.withLock { $0.due[path] }
            guard let noted, !noted.place.isWritten, !noted.place.isTree, isOurs(path) else {
                continue
            }
            // A later change by somebody else makes a new entry.
            readEvents()
            state.withLock { state in
                if state.due[path]?.time == noted.time { state.due[path] = nil }
            }
        }
        // The thread does not see events that were read here.
        if isMoving { ring() }
    }

    // MARK: The watcher's thread

    private func run() {
        var nextProbe = clinux_monotonic_nanoseconds() + FileWatcher.probeNanoseconds
        var nextLook = FileWatcher.lookNanoseconds.map { clinux_monotonic_nanoseconds() + $0 }
        while !isStopping.load(ordering: .acquiring) {
            probe(&nextProbe)
            look(&nextLook)
            let timeout = wakeDue(orAt: nextProbe, nextLook)
            var waiting = [
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
                pollfd(fd: queue, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waiting, 2, timeout) > 0 else { continue }
            if waiting[1].revents != 0 {
                readEvents()
                // Collects events for 20 ms before the places are checked.
                waiting[0].revents = 0
                poll(&waiting, 1, 20)
            }
            if waiting[0].revents != 0 { clinux_clear_event(bell) }
        }
    }

    /// Checks the directories that cannot be watched, and tries again to watch them.
    private func probe(_ next: inout Int64) {
        let now = clinux_monotonic_nanoseconds()
        guard now >= next else { return }
        next = now + FileWatcher.probeNanoseconds
        let paths = Array(state.withLock { $0.unwatched.keys })
        guard !paths.isEmpty else { return }
        // Order matters: what happens before a directory is watched is found by the check
        // afterwards.
        reading.withLock { _ in for path in paths { add(path, afterLoss: true) } }
        add(paths.map { Place(path: $0, isTree: true) })
    }

    /// Has everything looked at, where the system reports no edits.
    private func look(_ next: inout Int64?) {
        let now = clinux_monotonic_nanoseconds()
        guard let interval = FileWatcher.lookNanoseconds, let due = next, now >= due else { return }
        next = now + interval
        add([Place(path: .root, isTree: true, isWritten: false)], after: 0)
    }

    /// Wakes the commit thread if a place is due.
    ///
    /// - Returns: Milliseconds until the next place is due, or until `probe` if a directory is not
    ///   watched, or until `look`; -1 without a limit.
    private func wakeDue(orAt probe: Int64, _ look: Int64?) -> Int32 {
        let now = clinux_monotonic_nanoseconds()
        let (wake, rest) = state.withLock { state -> ((@Sendable () -> Void)?, Int64?) in
            var next = state.unwatched.isEmpty ? look : min(probe, look ?? .max)
            var isDue = state.unwatched.values.contains { !$0.isReported }
            for entry in state.due.values {
                if entry.time <= now {
                    isDue = true
                } else {
                    next = min(next ?? .max, entry.time)
                }
            }
            return (isDue ? state.wake : nil, next.map { $0 - now })
        }
        wake?()
        guard let rest else { return -1 }
        return Int32(rest / 1_000_000 + 1)
    }
}
