import StatePlatform
import StateSystem

/// Which directories are watched.
extension FileWatcher {
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

    /// What came of watching a directory.
    enum Watched {
        case new
        case known
        case failed(String)
    }

    /// Records that a directory cannot be watched, or its subdirectories cannot be listed.
    private func fail(_ path: FilePath, _ cause: String) {
        let error = StateError(.storage, "\(cause); it is checked for edits every 5 s instead")
        state.withLock { state in
            guard state.unwatched[path]?.error != error else { return }
            state.unwatched[path] = Unwatched(error: error)
        }
    }

    /// Records the events that the kernel has queued.
    func readEvents() {
        reading.withLock { _ in
            state.withLock { $0.readerCount += 1 }
            drainQueue()
            state.withLock { $0.readerCount -= 1 }
        }
    }
}
