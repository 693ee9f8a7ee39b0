import StatePlatform
import StateSystem

/// Finds the keyspace of a store that is open in this process: everybody who opens the store has
/// the same one, which closes when the last of them releases it.
package enum SharedKeyspace {
    /// Identifies a store, however its path is spelled.
    package struct Identity: Hashable, Sendable {
        private let kind: String
        private let device: UInt64
        private let inode: UInt64
        private let name: String

        /// The store in a directory; `kind` distinguishes stores of different formats.
        ///
        /// - Throws: ``StateError/Code/storage`` if the directory does not exist.
        package init(kind: String, directory: String) throws(StateError) {
            try self.init(kind: kind, directory: directory, name: "")
        }

        /// The store in a file, which may be missing, of a directory, which must exist.
        ///
        /// - Throws: ``StateError/Code/storage`` if the directory does not exist.
        package init(kind: String, file: String) throws(StateError) {
            var path = file
            if let resolved = realpath(file, nil) {
                path = String(cString: resolved)
                free(resolved)
            }
            let slash = path.lastIndex(of: "/")
            let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
            let name = slash.map { String(path[path.index(after: $0)...]) }
            try self.init(kind: kind, directory: parent ?? ".", name: name ?? path)
        }

        private init(kind: String, directory: String, name: String) throws(StateError) {
            var status = stat()
            guard stat(directory, &status) == 0 else {
                throw StateError(.storage, "\(directory) cannot be opened: \(lastSystemError())")
            }
            self.kind = kind
            self.name = name
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
        }
    }

    /// One store of the process, open or not.
    private final class Slot: Sendable {
        struct State {
            weak var opened: LocalKeyspace?
            /// From the start of opening until closing has ended.
            var isInUse = false
            /// Threads that wait for the store, each with a semaphore of its own.
            var waiting: [BlockingSemaphore] = []
        }

        let state = StateLock(State())

        func release() {
            let waiting = state.withLock { state in
                state.opened = nil
                state.isInUse = false
                defer { state.waiting = [] }
                return state.waiting
            }
            for semaphore in waiting { semaphore.signal() }
        }
    }

    private static let slots = StateLock<[Identity: Slot]>([:])

    /// Runs `open`, which waits for a disk, on a thread of its own, so that a task blocks none of the
    /// pool.
    ///
    /// - Throws: What `open` throws.
    package nonisolated(nonsending) static func opening<Opened: Sendable>(
        _ open: @escaping @Sendable () throws(StateError) -> Opened
    ) async throws(StateError) -> Opened {
        let result = await withCheckedContinuation { continuation in
            WorkerThread(name: "state-open").start {
                continuation.resume(returning: Result { () throws(StateError) in try open() })
            }
        }
        return try result.get()
    }

    /// The keyspace of a store, opened with `makeBacking()` if it is not open.
    ///
    /// Waits if another thread is opening or closing it.
    ///
    /// - Throws: ``StateError`` if it cannot be opened.
    package static func open(
        _ identity: Identity,
        _ makeBacking: () -> any Backing
    ) throws(StateError) -> LocalKeyspace {
        let slot = slots.withLock { slots in
            let slot = slots[identity] ?? Slot()
            slots[identity] = slot
            return slot
        }
        while true {
            let found = slot.state.withLock { state -> (LocalKeyspace?, BlockingSemaphore?) in
                if let opened = state.opened { return (opened, nil) }
                guard state.isInUse else {
                    state.isInUse = true
                    return (nil, nil)
                }
                let semaphore = BlockingSemaphore()
                state.waiting.append(semaphore)
                return (nil, semaphore)
            }
            if let opened = found.0 { return opened }
            guard let semaphore = found.1 else { break }
            semaphore.wait()
        }
        do throws(StateError) {
            let shared = try LocalKeyspace(backing: makeBacking()) { slot.release() }
            let waiting = slot.state.withLock { state in
                state.opened = shared
                defer { state.waiting = [] }
                return state.waiting
            }
            for semaphore in waiting { semaphore.signal() }
            return shared
        } catch {
            slot.release()
            throw error
        }
    }
}
