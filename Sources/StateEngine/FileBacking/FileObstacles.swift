import StateSystem

/// What stands in the way of keys below a directory, and why; they keep the values that they have.
final class FileObstacles: Sendable {
    /// More than these are not kept: whoever may make names makes as many as he likes, and each that is not kept is met when it is
    /// written.
    static let limit = 10_000

    private let state = StateLock<[FilePath: StateError]>([:])

    /// Everything, in no order.
    var all: [FilePath: StateError] { state.withLock { $0 } }

    /// What stands in `path` itself.
    subscript(path: FilePath) -> StateError? { state.withLock { $0[path] } }

    /// What stands in `path` or on the way to it.
    func onTheWay(to path: FilePath) -> StateError? {
        state.withLock { obstacles in
            guard !obstacles.isEmpty else { return nil }
            for place in [path] + path.ancestors {
                if let obstacle = obstacles[place] { return obstacle }
            }
            return nil
        }
    }

    /// Notes what stands in a place: from now on a write to it is refused.
    ///
    /// - Returns: Whether that is new; false for one that is not kept.
    func put(_ error: StateError, at path: FilePath) -> Bool {
        state.withLock { obstacles in
            guard obstacles.count < FileObstacles.limit || path.isRoot || obstacles[path] != nil
            else { return false }
            return obstacles.updateValue(error, forKey: path) != error
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
    /// The refusal of a write to `key` for what stands in its place.
    static func obstructed(_ key: Bytes, by obstacle: StateError) -> StateError {
        StateError(
            obstacle.code,
            "key \(quoted(key)) cannot be written: \(obstacle.message)"
        )
    }
}
