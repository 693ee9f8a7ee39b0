import CLinux
import Glibc

/// What inotify(7) says.
extension FileWatcher {
    private static let events: UInt32 =
        UInt32(IN_MODIFY) | UInt32(IN_CLOSE_WRITE) | UInt32(IN_ATTRIB) | UInt32(IN_MOVED_FROM)
        | UInt32(IN_MOVED_TO) | UInt32(IN_CREATE) | UInt32(IN_DELETE) | UInt32(IN_ONLYDIR)
        | UInt32(IN_EXCL_UNLINK) | UInt32(IN_DONT_FOLLOW)

    /// Watches a directory and those in it; before anything in them is looked at, so that nothing is missed.
    func add(_ path: FilePath) {
        let full = tree.location + (path.isRoot ? "" : "/")
        let bytes = Array(full.utf8) + path.bytes
        let watch = FilePath.withCString(bytes) { inotify_add_watch(queue, $0, Self.events) }
        guard watch >= 0 else { return fail(path, errno, lastSystemError()) }
        state.withLock { state in
            state.directories[watch] = path
            if !state.unwatched.isEmpty { state.unwatched[path] = nil }
        }
        do throws(FileFailure) {
            try tree.forEachName(in: path) { name, isDirectory in
                if isDirectory, FileName.isOfKey(name) { add(path.appending(name)) }
            }
        } catch {
            fail(path, error.code, error.sentence)
        }
    }

    /// A directory that cannot be watched, or be read for those in it; one that is gone is none.
    private func fail(_ path: FilePath, _ code: Int32, _ reason: String) {
        guard code != ENOENT, code != ENOTDIR else {
            return state.withLock { $0.unwatched[path] = nil }
        }
        // inotify_add_watch(2)
        let cause =
            code == ENOSPC
            ? "no inotify watch is left (see sysctl fs.inotify.max_user_watches)" : reason
        let error = StateError(.storage, "\(cause); edits in it are found by looking, every 5 s")
        state.withLock { state in
            guard state.unwatched[path]?.error != error else { return }
            state.unwatched[path] = Unwatched(error: error)
        }
    }

    /// A directory that has left its place: what happens in it is told no more.
    private func forget(_ path: FilePath) {
        let left = state.withLock { state in
            let left = state.directories.filter { entry in
                entry.value == path || entry.value.ancestors.contains(path)
            }
            for watch in left.keys { state.directories[watch] = nil }
            for place in state.unwatched.keys
            where place == path || place.ancestors.contains(path) { state.unwatched[place] = nil }
            return left.keys
        }
        for watch in left { inotify_rm_watch(queue, watch) }
    }

    /// Notes what the kernel has queued.
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
            if !places.isEmpty { note(places) }
        }
    }

    private func take(_ watch: Int32, _ mask: UInt32, _ name: [UInt8]) -> Place? {
        func has(_ event: some BinaryInteger) -> Bool { mask & UInt32(event) != 0 }
        if has(IN_Q_OVERFLOW) {
            add(.root)
            return Place(path: .root, isTree: true, isWritten: true)
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
            if has(IN_MOVED_FROM) || has(IN_DELETE) { forget(path) }
            if has(IN_MOVED_TO) || has(IN_CREATE) { add(path) }
        }
        return Place(path: path, isTree: isTree, isWritten: isWritten)
    }
}
