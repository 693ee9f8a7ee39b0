/// The changes of a commit to all files; storage gets them between ``FileContainers/stage(_:)`` and
/// ``FileContainers/publish(_:)``.
struct FilePublication {
    var parts: [FilePart] = []
    var listChange = PendingFileListChange.keep
    fileprivate var isListMinimal = false
}

extension FileContainers {
    /// Writes the new files of a batch beside their targets, and sets the batch's list of pending
    /// files.
    ///
    /// - Returns: What must be published once the batch is stored; nil if there is nothing to do.
    /// - Throws: ``StateError``; every file is as it was.
    /// - Complexity: O(*n*) in the bytes of the values that live in files, with one sync for each;
    ///   otherwise in the changes.
    func stage(_ batch: CommitBatch) throws(StateError) -> FilePublication? {
        let changes = try self.changes(of: batch)
        guard !changes.isEmpty || storedList != .none else { return nil }
        var publication = FilePublication()
        for case (let container?, let changes) in zip(byRule, changes) where !changes.isEmpty {
            do throws(StateError) {
                publication.parts.append(try container.stage(changes.lastOfEach(\.path)))
            } catch {
                drop(publication)
                wakeForRetries()
                throw error
            }
        }
        addPendingFiles(to: &publication)
        batch.pendingFileList = publication.listChange
        onStep(1)
        return publication
    }

    /// The changes of keys that live in files, by rule; empty if there are none.
    private func changes(of batch: CommitBatch) throws(StateError) -> [[FileChange]] {
        var changes: [[FileChange]] = []
        do {
            try batch.forEachChange { change in
                guard let rule = table.rule(of: change.key), let keys = byRule[rule]?.keys else {
                    return
                }
                if changes.isEmpty { changes = Array(repeating: [], count: byRule.count) }
                let path = try keys.path(of: change.key)
                let (value, revision) = (change.value, change.revision)
                changes[rule].append(FileChange(path: path, value: value, revision: revision))
            }
        } catch {
            throw error as? StateError ?? StateError(.storage, "\(error)")
        }
        return changes
    }

    /// Sets what the list of pending files will be, if it changes.
    func addPendingFiles(to publication: inout FilePublication) {
        var list = PendingFileList()
        var listed: Set<[UInt8]> = []
        for part in publication.parts {
            for (path, old) in part.old {
                guard let key = part.container.keys.key(of: path) else { continue }
                listed.insert(key.bytes)
                list.entries.append((key.bytes, part.container.unpublished[path]?.old ?? old))
            }
        }
        let isMinimal = list.entries.isEmpty
        let pending = containers.contains { !$0.unpublished.isEmpty }
        if isMinimal, storedList == .none || pending && storedList == .minimal { return }
        for container in containers {
            for (path, left) in container.unpublished {
                guard let key = container.keys.key(of: path),
                    !listed.contains(key.bytes)
                else { continue }
                list.entries.append((key.bytes, left.old))
            }
        }
        publication.isListMinimal = isMinimal
        publication.listChange = list.entries.isEmpty ? .remove : .set(list.text)
    }

    /// Removes what was staged.
    func drop(_ publication: FilePublication) {
        for part in publication.parts { part.container.files?.drop(part.staged) }
    }

    /// Puts the new files of a stored batch into place.
    ///
    /// A file that cannot be written is tried again, and writes to its key are refused meanwhile:
    /// the changes are stored and acknowledged.
    func publish(_ publication: FilePublication) {
        onStep(2)
        switch publication.listChange {
        case .keep: break
        case .remove: storedList = .none
        case .set: storedList = publication.isListMinimal ? .minimal : .whole
        }
        for part in publication.parts { part.container.publish(part) }
        wakeForRetries()
        looks.retry.end()
        onStep(3)
    }

    /// Schedules another try of what has failed.
    func wakeForRetries() {
        for container in containers {
            if let time = container.retry.at { wake(at: time) }
        }
    }

    /// A commit has failed, and everything computed on it is undone, including edits on their way
    /// to storage.
    func undoAdoptions() {
        guard containers.contains(where: { !$0.adopting.isEmpty }) else { return }
        looks.retry.next()
        let pause = looks.retry.pauseNanoseconds
        for container in containers where !container.adopting.isEmpty {
            let paths = Array(container.adopting.keys)
            container.adopting = [:]
            container.files?.lookAgain(at: paths, after: pause)
        }
    }
}
