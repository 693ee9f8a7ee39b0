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
        /// Files that commands wait for, and when each was looked at by itself; nil if it was not
        /// yet.
        var wanted: [FilePath: Int64?] = [:]
        /// When the last file or directory was removed, on the monotonic clock.
        var removedAt: Int64 = .min
        /// How many threads are reading events that they have not recorded yet.
        var readerCount = 0
        /// All events before this time of the monotonic clock are recorded.
        var recordedThrough: Int64 = .min
        var wake: @Sendable () -> Void = {}
        /// The watched directories.
        var directories: [Int32: WatchedDirectory] = [:]
        /// Directories that are watched next, with what is below them; they are due afterwards.
        var arrivals: [FilePath: Arrival] = [:]
        var arrivalCount = 0
        /// Directories that were moved away, and whose watches are to be removed.
        var departures: Set<FilePath> = []
        /// The directories that could not be watched.
        var unwatched: [FilePath: Unwatched] = [:]
        /// At most so many names are read to find the directories.
        var nameLimit: Int
    }

    /// Why a directory is not watched.
    struct Unwatched {
        var error: StateError
        /// Whether it was reported.
        var isReported = false
    }

    /// A directory that a watch of inotify stands for.
    struct WatchedDirectory {
        var path: FilePath
        /// The round of ``WatchingWork`` that has found it at its path.
        var round: Int
    }

    /// A directory that may have to be watched.
    struct Arrival {
        /// Whether what is below it may have other paths than before, or lack its watch, although
        /// it is watched itself.
        var isUnsure: Bool
        /// Tells it from a later one of the same path.
        var number: Int
    }

    static let quietNanoseconds: Int64 = 100_000_000
    /// How often directories that cannot be watched are checked.
    private static let probeNanoseconds: Int64 = 5_000_000_000
    /// Above this number of places, the whole tree is due.
    fileprivate static let placeLimit = 65_536
    /// At most this many directories are watched: all programs of a user share his watches.
    static let directoryLimit = 65_536
    /// The same for a directory that others than root and this process's user may write to: a
    /// rename of theirs costs as much work as there are directories below it.
    static let sharedDirectoryLimit = 8_192
    /// At most this many files are looked at before others.
    fileprivate static let wantedLimit = 1_024
    /// At most this many directories that are not watched are named one by one.
    static let unwatchedLimit = 100

    let tree: FileTree
    let directoryLimit: Int
    let queue: Int32
    /// Makes the thread check again.
    private let bell: Int32
    private let isStopping = Atomic(false)
    let state: StateLock<State>
    /// Held while reading events, so that they are recorded before another thread reads more;
    /// no directory is opened meanwhile.
    let reading = StateLock(())
    private let thread = WorkerThread(name: "files")

    /// Watches a directory and everything below it; whatever happens from then on is noticed.
    ///
    /// - Parameters:
    ///   - tree: The directory.
    ///   - directoryLimit: At most so many directories are watched; the others are looked at every
    ///     5 s.
    ///   - nameLimit: At most so many names are read to find them.
    /// - Throws: ``StateError/Code/storage`` if the system gives no queue of events.
    /// - Complexity: O(*n*) in the names, up to that limit.
    init(
        _ tree: FileTree,
        directoryLimit: Int,
        nameLimit: Int
    ) throws(StateError) {
        (self.tree, self.directoryLimit) = (tree, directoryLimit)
        state = StateLock(State(nameLimit: nameLimit))
        queue = FileWatcher.makeQueue()
        bell = clinux_eventfd()
        guard queue >= 0, bell >= 0 else {
            let reason = lastSystemError()
            for descriptor in [queue, bell] where descriptor >= 0 { close(descriptor) }
            throw FileWatcher.refusal(tree.location, reason)
        }
        var work = WatchingWork()
        state.withLock { $0.arrive(.root, isUnsure: false) }
        repeat { advance(&work) } while work.isBegun
        // Nothing has been read yet, so nothing has to be read again.
        state.withLock { $0.due = [:] }
    }

    deinit {
        close(queue)
        close(bell)
    }

    /// From the next walk through the directories on.
    func limitNames(to count: Int) { state.withLock { $0.nameLimit = count } }

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

    /// Has the commit thread look.
    func wakeForLook() { state.withLock { $0.wake }() }

    /// Some of the places that are due now, whether there are more, and directories that cannot be
    /// watched, once each.
    func takeDue(
        upTo count: Int
    ) -> (places: [Place], failures: [(FilePath, StateError)], isCut: Bool) {
        let now = clinux_monotonic_nanoseconds()
        return state.withLock { state in
            var (places, isCut): ([Place], Bool) = ([], false)
            for (place, time) in state.due.values where time <= now {
                isCut = places.count >= count
                if isCut { break }
                places.append(place)
            }
            for place in places {
                state.due[place.path] = nil
                state.taken[place.path] = place
            }
            let unreported = state.unwatched.filter { !$0.value.isReported }
            for path in unreported.keys { state.unwatched[path]?.isReported = true }
            return (places, unreported.map { ($0.key, $0.value.error) }, isCut)
        }
    }

    /// Directories that are only checked for edits periodically, and why.
    var unwatched: [FilePath: StateError] {
        state.withLock { $0.unwatched.mapValues(\.error) }
    }

    /// Files that commands wait for: they are looked at before the other places, of which others
    /// may have made very many, and which may be in directories that are not watched yet.
    ///
    /// - Returns: Some of the files, a time for ``finishLook(at:since:)``, and whether there are
    ///   more.
    func takeWanted(upTo count: Int) -> (paths: [FilePath], since: Int64, isCut: Bool) {
        let now = clinux_monotonic_nanoseconds()
        return state.withLock { state in
            var paths: [FilePath] = []
            for (path, lookedAt) in state.wanted where lookedAt == nil {
                guard paths.count < count else { return (paths, now, true) }
                if let due = state.due[path] {
                    guard due.time <= now, !due.place.isTree else { continue }
                    state.due[path] = nil
                    state.taken[path] = due.place
                }
                paths.append(path)
            }
            return (paths, now, false)
        }
    }

    /// Wanted files were looked at, and what was found is recorded.
    func finishLook(at wanted: Set<FilePath>, since time: Int64) {
        guard !wanted.isEmpty else { return }
        state.withLock { state in
            for path in wanted where state.wanted[path] != nil { state.wanted[path] = time }
        }
    }

    /// The taken places were read, and what was found is recorded.
    func finishLook() {
        state.withLock { state in
            if !state.taken.isEmpty { state.taken = [:] }
            if state.isQuiet, !state.wanted.isEmpty { state.wanted = [:] }
        }
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
    var isMoving: Bool { state.withLock { !$0.due.isEmpty || !$0.arrivals.isEmpty } }

    /// When the last file or directory was removed, on the monotonic clock.
    var removedAt: Int64 { state.withLock { $0.removedAt } }

    /// Whether others may have changed the file at `path`, or any file if it is nil, before a time
    /// of the monotonic clock, and that is not known yet.
    ///
    /// Reads no file: the kernel has queued the event of a change before the call that made it
    /// returns. So everything that somebody did before that time is seen here. Events after it do
    /// not count: somebody who makes events without end holds up nobody else's files.
    func mayHaveChanged(_ path: FilePath?, before time: Int64) -> Bool {
        var events = pollfd(fd: queue, events: Int16(POLLIN), revents: 0)
        // Order matters: events are either still queued, or being recorded, or recorded.
        let isQueued = poll(&events, 1, 0) > 0
        let (mayHave, wake) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            if isQueued || state.readerCount > 0, state.recordedThrough < time {
                return (true, nil)
            }
            if state.isQuiet { return (false, nil) }
            guard let path else { return (true, nil) }
            let above = path.ancestors
            let isPending = ([path] + above).contains { place in
                state.due[place] != nil || state.taken[place] != nil
                    || state.arrivals[place] != nil
            }
            guard isPending else { return (false, nil) }
            // Something else than a directory may be on its way.
            let isCut = above.contains { place in
                [state.due[place]?.place, state.taken[place]].contains { $0?.isTree == false }
            }
            if isCut { return (true, nil) }
            if let due = state.due[path] {
                guard due.time <= clinux_monotonic_nanoseconds() else { return (true, nil) }
            } else if let lookedAt = state.wanted[path] ?? nil, lookedAt >= time {
                return (false, nil)
            }
            return (true, state.want(path) ? state.wake : nil)
        }
        wake?()
        return mayHave
    }

    /// Discards events of this process's own renames, if `isOurs` returns true for the place.
    ///
    /// - Complexity: O(*n*) in the events that are queued, which the kernel limits, and the paths.
    func forgetOwn(_ paths: [FilePath], where isOurs: (FilePath) -> Bool) {
        readEvents()
        var own: [(path: FilePath, time: Int64)] = []
        for path in paths {
            guard let noted = state.withLock({ $0.due[path] }), !noted.place.isWritten,
                !noted.place.isTree, isOurs(path)
            else { continue }
            own.append((path, noted.time))
        }
        // A later change by somebody else makes a new entry.
        if !own.isEmpty { readEvents() }
        state.withLock { state in
            for (path, time) in own where state.due[path]?.time == time { state.due[path] = nil }
        }
        // The thread does not see events that were read here.
        if isMoving { ring() }
    }

    // MARK: The watcher's thread

    private func run() {
        var nextProbe = clinux_monotonic_nanoseconds() + FileWatcher.probeNanoseconds
        var nextLook = FileWatcher.lookNanoseconds.map { clinux_monotonic_nanoseconds() + $0 }
        var work = WatchingWork()
        while !isStopping.load(ordering: .acquiring) {
            probe(&nextProbe)
            look(&nextLook)
            // Events are read between its pieces.
            advance(&work)
            let rest = wakeDue(orAt: nextProbe, nextLook)
            let timeout = work.isBegun ? 0 : rest
            var waiting = [
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
                pollfd(fd: queue, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waiting, 2, timeout) > 0 else { continue }
            if waiting[1].revents != 0 {
                readEvents()
                // Collects events for 20 ms before the places are checked.
                waiting[0].revents = 0
                if !work.isBegun { poll(&waiting, 1, 20) }
            }
            if waiting[0].revents != 0 { clinux_clear_event(bell) }
        }
    }

    /// Checks the directories that cannot be watched, and tries again to watch them, unless as many
    /// are watched as may be: then it only has everything looked at.
    private func probe(_ next: inout Int64) {
        let now = clinux_monotonic_nanoseconds()
        guard now >= next else { return }
        next = now + FileWatcher.probeNanoseconds
        let isFull = state.withLock { state in
            let isFull =
                state.unwatched[.root] != nil && state.directories.count >= directoryLimit
            for path in state.unwatched.keys where !isFull { state.arrive(path, isUnsure: true) }
            return isFull
        }
        if isFull { add([Place(path: .root, isTree: true, isWritten: false)], after: 0) }
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

extension FileWatcher.State {
    /// Whether no place may have changed.
    var isQuiet: Bool { due.isEmpty && taken.isEmpty && arrivals.isEmpty }

    /// Has a file looked at before others, unless there are too many.
    ///
    /// - Returns: Whether that is new.
    mutating func want(_ path: FilePath) -> Bool {
        if let lookedAt = wanted[path], lookedAt == nil { return false }
        guard wanted.count < FileWatcher.wantedLimit || wanted[path] != nil else {
            wanted = wanted.filter { $0.value == nil }
            return false
        }
        wanted[path] = .some(nil)
        return true
    }

    /// A directory that may be new at a path: it is watched, and read afterwards.
    mutating func arrive(_ path: FilePath, isUnsure: Bool) {
        arrivalCount += 1
        let isUnsure = isUnsure || arrivals[path]?.isUnsure ?? false
        arrivals[path] = FileWatcher.Arrival(isUnsure: isUnsure, number: arrivalCount)
        if arrivals.count > FileWatcher.placeLimit { beginAnew() }
    }

    /// A directory that is no longer at a path, with all below it.
    mutating func depart(_ path: FilePath) {
        departures.insert(path)
        if departures.count > FileWatcher.placeLimit { beginAnew() }
    }

    /// Too many directories come and go: all of them are looked for.
    private mutating func beginAnew() {
        let all = FileWatcher.Arrival(isUnsure: true, number: arrivalCount)
        (arrivals, departures) = ([.root: all], [.root])
    }
}
