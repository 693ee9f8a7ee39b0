import StateSystem

/// What obstructs keys below a directory, and why; these keys keep their values.
final class FileObstacles: Sendable {
    /// At most this many are kept: a user who may create names can create any number.
    ///
    /// One that is not kept is found when it is written.
    static let limit = 10_000

    private let state = StateLock(PathTable<StateError>())

    /// Everything, in no order.
    var all: [FilePath: StateError] { state.withLock { $0.all } }

    /// The obstacle at `path` itself.
    subscript(path: FilePath) -> StateError? { state.withLock { $0[path] } }

    /// The paths directly in a directory that are obstructed, or below which others are.
    func children(of directory: FilePath) -> Set<FilePath> {
        state.withLock { $0.children(of: directory) }
    }

    /// The obstacle at `path` or on the path to it.
    func onTheWay(to path: FilePath) -> StateError? {
        state.withLock { obstacles in
            guard !obstacles.isEmpty else { return nil }
            for place in [path] + path.ancestors {
                if let obstacle = obstacles[place] { return obstacle }
            }
            return nil
        }
    }

    /// Records an obstacle: from now on a write to the place is refused.
    ///
    /// - Returns: Whether it is new; false if it is not kept.
    func put(_ error: StateError, at path: FilePath) -> Bool {
        state.withLock { obstacles in
            guard obstacles.count < FileObstacles.limit || path.isRoot || obstacles[path] != nil
            else { return false }
            let before = obstacles[path]
            obstacles[path] = error
            return before != error
        }
    }

    func removeAll(where isRemoved: (FilePath) -> Bool) {
        for path in all.keys where isRemoved(path) { remove(path) }
    }

    func remove(_ path: FilePath) {
        state.withLock { obstacles in
            if !obstacles.isEmpty { obstacles[path] = nil }
        }
    }
}

extension StateError {
    /// The refusal of a write to `key` because of an obstacle.
    static func obstructed(_ key: Bytes, by obstacle: StateError) -> StateError {
        StateError(
            obstacle.code,
            "key \(quoted(key)) cannot be written: \(obstacle.message)"
        )
    }
}
