import CLinux
import StatePlatform
import StateSystem

/// The work of watching what has arrived and no longer watching what has departed, which the
/// watcher's thread does in pieces.
///
/// A directory is watched before it is read, so that nothing is missed. A rename leaves the watches
/// of all that is below it in place, with other paths: so everything below its new path is looked
/// for first, and the watches that were not found again below the old one are removed afterwards.
/// Rejected: removing them first. Each removal queues an event, and above 16,384 of these the
/// kernel drops others.
struct WatchingWork {
    /// The number of this piece of work.
    fileprivate(set) var round = 0
    fileprivate(set) var isBegun = false
    fileprivate var arrivals: [FilePath: FileWatcher.Arrival] = [:]
    fileprivate var departures: Set<FilePath> = []
    /// The directories that are watched next, and whether those below them are, in any case.
    fileprivate var rest: [(path: FilePath, isUnsure: Bool)] = []
    /// Watches below what has departed; nil until everything that arrived is watched.
    fileprivate var left: [Int32]?
    /// How many names were read, and may be.
    fileprivate var names = (count: 0, limit: 0)
    /// Whether all of the directory is looked at later because some of it cannot be watched.
    fileprivate var isPartial = false

    init() {}
}

/// Which directories are watched.
extension FileWatcher {
    /// At most so many directories are watched or left in a piece.
    private static let pieceCount = 256

    /// Does the next piece of the work.
    ///
    /// - Complexity: O(*n*) in the names of at most 256 directories, up to the limit of names.
    func advance(_ work: inout WatchingWork) {
        guard work.isBegun || begin(&work) else { return }
        for _ in 0..<FileWatcher.pieceCount {
            guard let next = work.rest.popLast() else { break }
            watch(next.path, next.isUnsure, &work)
        }
        guard work.rest.isEmpty else { return }
        if work.left == nil { finishArrivals(&work) }
        removeWatches(&work)
    }

    private func begin(_ work: inout WatchingWork) -> Bool {
        (work.arrivals, work.departures, work.names.limit) = state.withLock { state in
            let departures = state.departures
            state.departures = []
            if !departures.isEmpty, !state.unwatched.isEmpty {
                state.unwatched = state.unwatched.filter {
                    $0.key.isRoot || !FileWatcher.has(departures, $0.key)
                }
            }
            return (state.arrivals, departures, state.nameLimit)
        }
        guard !work.arrivals.isEmpty || !work.departures.isEmpty else { return false }
        work.round += 1
        (work.isBegun, work.left, work.isPartial, work.names.count) = (true, nil, false, 0)
        work.rest = work.arrivals.map { ($0.key, $0.value.isUnsure) }
        return true
    }

    /// Has everything read that is watched now.
    private func finishArrivals(_ work: inout WatchingWork) {
        add(work.arrivals.keys.map { Place(path: $0, isTree: true) })
        let (arrivals, departures, round) = (work.arrivals, work.departures, work.round)
        let isWhole = arrivals[.root] != nil && !work.isPartial
        let directories = state.withLock { state in
            for (path, arrival) in arrivals where state.arrivals[path]?.number == arrival.number {
                state.arrivals[path] = nil
            }
            if isWhole { state.unwatched[.root] = nil }
            return departures.isEmpty ? [:] : state.directories
        }
        work.left = directories.filter {
            $0.value.round < round && FileWatcher.has(departures, $0.value.path)
        }
        .map(\.key)
    }

    /// Whether a path is one of some, or below one.
    private static func has(_ departures: Set<FilePath>, _ path: FilePath) -> Bool {
        guard !departures.isEmpty else { return false }
        return departures.contains(path)
            || (departures.count <= 16
                ? departures.contains(where: path.isBelow)
                : path.ancestors.contains(where: departures.contains))
    }

    private func removeWatches(_ work: inout WatchingWork) {
        guard let left = work.left else { return }
        for watch in left.suffix(FileWatcher.pieceCount) {
            state.withLock { $0.directories[watch] = nil }
            removeWatch(watch)
        }
        work.left = left.dropLast(FileWatcher.pieceCount)
        if left.count <= FileWatcher.pieceCount { work.isBegun = false }
    }

    /// Watches a directory, and notes those in it.
    ///
    /// A directory that is watched already is not listed again, unless those below it are unsure.
    private func watch(_ path: FilePath, _ isUnsure: Bool, _ work: inout WatchingWork) {
        do throws(FileFailure) {
            switch try watch(path, in: work.round) {
            case .failed(let cause): return fail(path, cause, &work)
            case .isFull:
                // Nothing else could be watched either.
                work.rest = []
                let cause = "there are more than \(directoryLimit) directories"
                return fail(.root, cause, &work)
            case .known where !isUnsure: return
            case .new, .known: break
            }
            try tree.forEachName(in: path) { (name, isDirectory) throws(FileFailure) in
                guard work.names.count < work.names.limit else {
                    throw FileFailure(tooManyNames: work.names.limit)
                }
                work.names.count += 1
                let below = path.appending(name)
                if isDirectory, FileName.isOfKey(name), below.mayHoldKeys {
                    work.rest.append((below, isUnsure))
                }
            }
        } catch  where error.code == ENOENT || error.code == ENOTDIR || error.isUntrusted {
            // A missing directory needs no watch. One that others may change is refused when it is
            // read.
            state.withLock { $0.unwatched[path] = nil }
        } catch  where error.code == E2BIG {
            fail(.root, "there are more than \(work.names.limit) names (limits.files)", &work)
        } catch {
            fail(path, error.sentence, &work)
        }
    }

    /// What came of watching a directory.
    enum Watched {
        case new
        case known
        case failed(String)
        /// As many are watched as may be.
        case isFull
    }

    /// Records that a directory cannot be watched, or its subdirectories cannot be listed; if there
    /// are many of them, that not all of them can.
    private func fail(_ path: FilePath, _ cause: String, _ work: inout WatchingWork) {
        let error = StateError(.storage, "\(cause); it is checked for edits every 5 s instead")
        let isPartial = state.withLock { state in
            let isMany = state.unwatched.count >= FileWatcher.unwatchedLimit
            let place = isMany && state.unwatched[path] == nil ? .root : path
            guard state.unwatched[place]?.error != error else { return place.isRoot }
            state.unwatched[place] = Unwatched(error: error)
            return place.isRoot
        }
        work.isPartial = work.isPartial || isPartial
    }

    /// Records the events that the kernel has queued.
    ///
    /// - Complexity: O(*n*) in the events that are queued when it begins, which the kernel limits.
    func readEvents() {
        reading.withLock { _ in
            let time = clinux_monotonic_nanoseconds()
            state.withLock { $0.readerCount += 1 }
            readQueue()
            state.withLock { state in
                state.readerCount -= 1
                state.recordedThrough = time
            }
        }
    }
}
