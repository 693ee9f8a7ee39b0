import StateSystem

/// Files that are being written, where no events tell when nothing has happened for a while.
extension FileDirectory {
    /// Takes the files out that somebody has changed within the quiet time: they are due after another
    /// one.
    func postpone(_ places: inout [FilePath: Bool]) {
        let now = SystemClock.wallMilliseconds() * 1_000_000
        for path in places.keys {
            guard let status = try? tree.status(path), status.isRegular,
                status.stamp != known[path]?.stamp
            else { continue }
            // A clock that was set back does not hold a file forever.
            let age = now - status.changed
            guard (0..<FileWatcher.quietNanoseconds).contains(age) else { continue }
            places[path] = nil
            watcher.note([FileWatcher.Place(path: path)])
        }
    }
}
