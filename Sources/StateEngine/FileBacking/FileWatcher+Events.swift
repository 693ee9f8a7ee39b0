import CLinux
import Glibc
import StateSystem

/// The events of inotify(7).
extension FileWatcher {
    private static let events: UInt32 =
        UInt32(IN_MODIFY) | UInt32(IN_CLOSE_WRITE) | UInt32(IN_ATTRIB) | UInt32(IN_MOVED_FROM)
        | UInt32(IN_MOVED_TO) | UInt32(IN_CREATE) | UInt32(IN_DELETE) | UInt32(IN_ONLYDIR)
        | UInt32(IN_EXCL_UNLINK)

    /// Watches a directory and its subdirectories, before anything in them is read, so that nothing
    /// is missed.
    ///
    /// A directory that is watched already is not listed again, unless events were lost.
    func add(_ path: FilePath, afterLoss: Bool = false) {
        var rest = [path]
        while let next = rest.popLast() { watch(next, &rest, afterLoss) }
    }

    private func watch(
        _ path: FilePath,
        _ subdirectories: inout [FilePath],
        _ afterLoss: Bool
    ) {
        do throws(FileFailure) {
            switch try watch(path) {
            case .failed(let cause): return fail(path, cause)
            case .known where !afterLoss: return
            case .new, .known: break
            }
            try tree.forEachName(in: path) { name, isDirectory in
                let below = path.appending(name)
                if isDirectory, FileName.isOfKey(name), below.mayHoldKeys {
                    subdirectories.append(below)
                }
            }
        } catch  where error.code == ENOENT || error.code == ENOTDIR || error.isUntrusted {
            // A missing directory needs no watch. One that others may change is refused when it is
            // read.
            state.withLock { $0.unwatched[path] = nil }
        } catch {
            fail(path, error.sentence)
        }
    }

    private enum Watched {
        case new
        case known
        case failed(String)
    }

    /// Watches one directory.
    private func watch(_ path: FilePath) throws(FileFailure) -> Watched {
        let directory = try tree.directory(path)
        let count = state.withLock { $0.directories.count }
        guard count < FileWatcher.directoryLimit else {
            return .failed("there are more than \(FileWatcher.directoryLimit) directories")
        }
        // By its descriptor: its path may lead elsewhere by now.
        let link = "/proc/self/fd/\(directory.descriptor)"
        let watch = inotify_add_watch(queue, link, FileWatcher.events)
        guard watch >= 0 else {
            // inotify_add_watch(2)
            return .failed(
                errno == ENOSPC
                    ? "no inotify watch is left (see sysctl fs.inotify.max_user_watches)"
                    : "\(link) cannot be watched: \(lastSystemError())"
            )
        }
        return state.withLock { state in
            if !state.unwatched.isEmpty { state.unwatched[path] = nil }
            return state.directories.updateValue(path, forKey: watch) == path ? .known : .new
        }
    }

    /// Records that a directory cannot be watched, or its subdirectories cannot be listed.
    private func fail(_ path: FilePath, _ cause: String) {
        let error = StateError(.storage, "\(cause); it is checked for edits every 5 s instead")
        state.withLock { state in
            guard state.unwatched[path]?.error != error else { return }
            state.unwatched[path] = Unwatched(error: error)
        }
    }

    /// Stops watching a directory that was moved away.
    ///
    /// - Complexity: O(*n*) in the directories that are watched.
    private func forget(_ path: FilePath) {
        let left = state.withLock { state in
            let left = state.directories.filter { $0.value == path || $0.value.isBelow(path) }
            for watch in left.keys { state.directories[watch] = nil }
            for place in state.unwatched.keys where place == path || place.isBelow(path) {
                state.unwatched[place] = nil
            }
            return left.keys
        }
        for watch in left { inotify_rm_watch(queue, watch) }
    }

    /// Records the events that the kernel has queued.
    func readEvents() {
        reading.withLock { _ in
            state.withLock { $0.readerCount += 1 }
            drainQueue()
            state.withLock { $0.readerCount -= 1 }
        }
    }

    private func drainQueue() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(queue, &buffer, buffer.count)
            guard count > 0 else { return }
            var places: [Place] = []
            buffer.withUnsafeBytes { bytes in
                var start = 0
                while start + 16 <= count {
                    let watch = bytes.loadUnaligned(fromByteOffset: start, as: Int32.self)
                    let mask = bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self)
                    let size = bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self)
                    let end = start + 16 + Int(size)
                    let name = Array(bytes.slice(start + 16, end).prefix { $0 != 0 })
                    if let place = take(watch, mask, name) { places.append(place) }
                    start = end
                }
            }
            if !places.isEmpty { add(places) }
        }
    }

    private func take(_ watch: Int32, _ mask: UInt32, _ name: [UInt8]) -> Place? {
        func has(_ event: some BinaryInteger) -> Bool { mask & UInt32(event) != 0 }
        if has(IN_Q_OVERFLOW) {
            add(.root, afterLoss: true)
            return Place(path: .root, isTree: true)
        }
        if has(IN_IGNORED) {
            state.withLock { $0.directories[watch] = nil }
            return nil
        }
        guard let directory = state.withLock({ $0.directories[watch] }), !name.isEmpty,
            FileName.isOfKey(name)
        else { return nil }
        let path = directory.appending(name)
        let isWritten = has(IN_MODIFY) || has(IN_CLOSE_WRITE) || has(IN_ATTRIB)
        let isTree = has(IN_ISDIR)
        if has(IN_DELETE) {
            let now = clinux_monotonic_nanoseconds()
            state.withLock { $0.removedAt = now }
        }
        if isTree {
            // A removed directory was empty, and IN_IGNORED ends its own watch.
            if has(IN_MOVED_FROM) { forget(path) }
            if has(IN_DELETE) { state.withLock { $0.unwatched[path] = nil } }
            // A directory that others could change was not watched until now.
            if has(IN_MOVED_TO) || has(IN_CREATE) || has(IN_ATTRIB) { add(path) }
        }
        return Place(path: path, isTree: isTree, isWritten: isWritten)
    }
}
