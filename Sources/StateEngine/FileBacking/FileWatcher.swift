import CLinux
import Glibc
import StateSystem
import Synchronization

/// Notices what others do in the directory, by inotify(7), on a thread of its own; what it names is looked at by the commit thread.
///
/// A place counts as soon as nothing happened there for a while, so that a file that is being written is not taken half.
final class FileWatcher: Sendable {
    /// A place that may have changed.
    struct Place: Hashable {
        var path: FilePath
        /// Whether all that is below it may have changed, too.
        var isTree = false
        /// Whether bytes of the file itself were written, or its mode changed: no rename of ours does that.
        var isWritten = true
    }

    struct State {
        /// When each place counts, in nanoseconds of CLOCK_MONOTONIC.
        var due: [FilePath: (place: Place, time: Int64)] = [:]
        /// Places that were taken and are being looked at.
        var taken: [FilePath: Place] = [:]
        /// When the last file or directory was removed, on the monotonic clock.
        var removedAt: Int64 = .min
        /// How many threads read events that they have not noted yet.
        var readerCount = 0
        var wake: @Sendable () -> Void = {}
        /// The directories that are watched; who reads events changes them.
        var directories: [Int32: FilePath] = [:]
        /// Those that could not be.
        var unwatched: [FilePath: Unwatched] = [:]
    }

    /// Why a directory is not watched.
    struct Unwatched {
        var error: StateError
        /// Whether it was handed out.
        var isTold = false
    }

    static let quietNanoseconds: Int64 = 100_000_000
    /// Directories that cannot be watched are looked at so often.
    private static let probeNanoseconds: Int64 = 5_000_000_000
    /// More places than these become the whole tree.
    private static let placeLimit = 65_536
    /// More directories than these are not watched: the watches of a user are for all his programs.
    static let directoryLimit = 65_536

    let tree: FileTree
    let queue: Int32
    /// Has the thread look again.
    private let bell: Int32
    private let isStopping = Atomic(false)
    let state = StateLock(State())
    /// Whoever reads events notes them before another does.
    let reading = StateLock(())
    private let thread = WorkerThread(name: "files")

    init(_ tree: FileTree) throws(StateError) {
        self.tree = tree
        queue = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        bell = clinux_eventfd()
        guard queue >= 0, bell >= 0 else {
            let reason = lastSystemError()
            for descriptor in [queue, bell] where descriptor >= 0 { close(descriptor) }
            throw StateError(
                .storage,
                "\(tree.location) cannot be watched: \(reason) (inotify; see sysctl fs.inotify.max_user_instances)"
            )
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

    /// The places that count now, and directories that cannot be watched, once each.
    func takeDue() -> (places: [Place], failures: [(FilePath, StateError)]) {
        let now = clinux_monotonic_nanoseconds()
        return state.withLock { state in
            let places = state.due.values.filter { $0.time <= now }.map(\.place)
            for place in places {
                state.due[place.path] = nil
                state.taken[place.path] = place
            }
            let untold = state.unwatched.filter { !$0.value.isTold }
            for path in untold.keys { state.unwatched[path]?.isTold = true }
            return (places, untold.map { ($0.key, $0.value.error) })
        }
    }

    /// Directories in which edits are only found by looking, and why.
    var unwatched: [FilePath: StateError] {
        state.withLock { $0.unwatched.mapValues(\.error) }
    }

    /// What was taken has been looked at, and what it has become is known.
    func finishLook() {
        state.withLock { if !$0.taken.isEmpty { $0.taken = [:] } }
    }

    /// Has places looked at after another quiet time, or after some other nanoseconds.
    func note(_ places: [Place], after nanoseconds: Int64 = FileWatcher.quietNanoseconds) {
        guard !places.isEmpty else { return }
        add(places, after: nanoseconds)
        ring()
    }

    private func ring() {
        var one: UInt64 = 1
        write(bell, &one, 8)
    }

    /// The same without waking the thread, for who reads events.
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

    /// Whether places are noted that are not quiet yet.
    var isMoving: Bool { state.withLock { !$0.due.isEmpty } }

    /// When the last file or directory was removed, on the monotonic clock.
    var removedAt: Int64 { state.withLock { $0.removedAt } }

    /// Whether others may have changed the file at `path`, or any file if it is nil, and what they did is not known yet.
    ///
    /// Looks at no file: the kernel has queued the event of a change before the call that made it returns. So what somebody did
    /// before he asked is seen here.
    func mayHaveChanged(_ path: FilePath?) -> Bool {
        var events = pollfd(fd: queue, events: Int16(POLLIN), revents: 0)
        // Order matters: events are either still queued, or being noted, or noted.
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

    /// Forgets events of this process's own renames, if `isOurs` returns true for the place.
    func forgetOwn(_ paths: [FilePath], where isOurs: (FilePath) -> Bool) {
        readEvents()
        for path in paths {
            let noted = state.withLock { $0.due[path] }
            guard let noted, !noted.place.isWritten, !noted.place.isTree, isOurs(path) else {
                continue
            }
            // What somebody did since is another note.
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
        while !isStopping.load(ordering: .acquiring) {
            probe(&nextProbe)
            let timeout = wakeDue(orAt: nextProbe)
            var waiting = [
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
                pollfd(fd: queue, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waiting, 2, timeout) > 0 else { continue }
            if waiting[1].revents != 0 {
                readEvents()
                // One look for many events.
                waiting[0].revents = 0
                poll(&waiting, 1, 20)
            }
            if waiting[0].revents != 0 {
                var value: UInt64 = 0
                read(bell, &value, 8)
            }
        }
    }

    /// Looks at the directories that cannot be watched, and tries again to watch them.
    private func probe(_ next: inout Int64) {
        let now = clinux_monotonic_nanoseconds()
        guard now >= next else { return }
        next = now + FileWatcher.probeNanoseconds
        let paths = Array(state.withLock { $0.unwatched.keys })
        guard !paths.isEmpty else { return }
        // Order matters: what happens before a directory is watched is found by looking afterwards.
        reading.withLock { _ in for path in paths { add(path, afterLoss: true) } }
        add(paths.map { Place(path: $0, isTree: true) })
    }

    /// Wakes the commit thread if a place is due.
    ///
    /// - Returns: Milliseconds until the next one is, or until `probe` if a directory is not watched; -1 if there is none.
    private func wakeDue(orAt probe: Int64) -> Int32 {
        let now = clinux_monotonic_nanoseconds()
        let (wake, rest) = state.withLock { state -> ((@Sendable () -> Void)?, Int64?) in
            var next = state.unwatched.isEmpty ? nil : probe
            var isDue = state.unwatched.values.contains { !$0.isTold }
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
