#if !canImport(Darwin)

import CLinux
import StatePlatform
import StateSystem

/// The events of inotify(7).
extension FileWatcher {
    private static let events: UInt32 =
        UInt32(IN_MODIFY) | UInt32(IN_CLOSE_WRITE) | UInt32(IN_ATTRIB) | UInt32(IN_MOVED_FROM)
        | UInt32(IN_MOVED_TO) | UInt32(IN_CREATE) | UInt32(IN_DELETE) | UInt32(IN_ONLYDIR)
        | UInt32(IN_EXCL_UNLINK)

    /// How often the complete directory is looked at; nil: only if events were lost.
    static var lookNanoseconds: Int64? { nil }

    /// The descriptor from which the events are read; -1 with errno.
    static func makeQueue() -> Int32 { inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)) }

    /// The error of a directory that cannot be watched.
    static func refusal(_ location: String, _ reason: String) -> StateError {
        StateError(
            .storage,
            "\(location) cannot be watched: \(reason) "
                + "(inotify; see sysctl fs.inotify.max_user_instances)"
        )
    }

    /// Watches one directory.
    func watch(_ path: FilePath, in round: Int) throws(FileFailure) -> Watched {
        let directory = try tree.directory(path)
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
        let watched: Watched = state.withLock { state in
            let known = state.directories[watch]?.path
            if known == nil, state.directories.count >= directoryLimit { return .isFull }
            // That of the root also says that not all directories are watched.
            if !path.isRoot, !state.unwatched.isEmpty { state.unwatched[path] = nil }
            state.directories[watch] = WatchedDirectory(path: path, round: round)
            return known == path ? .known : .new
        }
        if case .isFull = watched { removeWatch(watch) }
        return watched
    }

    func removeWatch(_ watch: Int32) { inotify_rm_watch(queue, watch) }

    /// Reads and records the events that the kernel has queued; those that are queued meanwhile
    /// are left.
    func readQueue() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var waiting: Int32 = 0
        guard clinux_waiting_byte_count(queue, &waiting) == 0 else { return }
        while waiting > 0 {
            let count = read(queue, &buffer, buffer.count)
            guard count > 0 else { return }
            waiting -= Int32(count)
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
            state.withLock { $0.arrive(.root, isUnsure: true) }
            return nil
        }
        if has(IN_IGNORED) {
            state.withLock { $0.directories[watch] = nil }
            return nil
        }
        guard let directory = state.withLock({ $0.directories[watch]?.path }), !name.isEmpty,
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
            if has(IN_MOVED_FROM) { state.withLock { $0.depart(path) } }
            if has(IN_DELETE) { state.withLock { $0.unwatched[path] = nil } }
            // A directory that others could change was not watched until now.
            if has(IN_MOVED_TO) || has(IN_CREATE) || has(IN_ATTRIB) {
                state.withLock { $0.arrive(path, isUnsure: has(IN_MOVED_TO)) }
                return nil
            }
        }
        return Place(path: path, isTree: isTree, isWritten: isWritten)
    }
}

#endif
