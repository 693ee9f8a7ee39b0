/// What a commit does to all files: between ``FileContainers/stage(_:)`` and ``FileContainers/publish(_:)`` the rows are stored.
struct FilePublication {
    var parts: [FilePart] = []
    var mark = PendingFileListChange.keep
    fileprivate var isPendingFileListMinimal = false
}

extension FileContainers {
    /// Writes the new files of a batch beside their targets, and gives the batch the mark that names them.
    ///
    /// - Returns: What is to be published once the batch is stored; nil if there is nothing to do.
    /// - Throws: ``StateError``; every file is as it was.
    /// - Complexity: O(*n*) in the bytes of the values that live in files, with one sync for each; else in the changes.
    func stage(_ batch: CommitBatch) throws(StateError) -> FilePublication? {
        let changes = try self.changes(of: batch)
        guard !changes.isEmpty || hasPendingFileList else { return nil }
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
        batch.pendingFileList = publication.mark
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

    private func addPendingFiles(to publication: inout FilePublication) {
        var mark = PendingFileList()
        for part in publication.parts {
            for (path, old) in part.old {
                guard let key = part.container.keys.key(of: path) else { continue }
                mark.entries.append((key.bytes, part.container.unpublished[path]?.old ?? old))
            }
        }
        let isMinimal = mark.entries.isEmpty
        let pending = containers.contains { !$0.unpublished.isEmpty }
        if isMinimal, !hasPendingFileList || pending && isPendingFileListMinimal { return }
        for container in containers {
            for (path, left) in container.unpublished {
                guard let key = container.keys.key(of: path),
                    !mark.entries.contains(where: { $0.key == key.bytes })
                else { continue }
                mark.entries.append((key.bytes, left.old))
            }
        }
        publication.isPendingFileListMinimal = isMinimal
        publication.mark = mark.entries.isEmpty ? .remove : .set(mark.text)
    }

    /// Takes back what was staged.
    func drop(_ publication: FilePublication) {
        for part in publication.parts { part.container.files?.drop(part.staged) }
    }

    /// Puts the new files of a batch that is stored in their places.
    ///
    /// A file that cannot be written is tried again, and its key refused meanwhile: the rows are stored, and acknowledged.
    func publish(_ publication: FilePublication) {
        onStep(2)
        switch publication.mark {
        case .keep: break
        case .remove: hasPendingFileList = false
        case .set: hasPendingFileList = true
        }
        isPendingFileListMinimal = publication.isPendingFileListMinimal
        for part in publication.parts { part.container.publish(part) }
        wakeForRetries()
        adoptionRetry.end()
        onStep(3)
    }

    /// Sees to it that what has failed is tried again.
    func wakeForRetries() {
        for container in containers {
            if let time = container.retry.at { wake(at: time) }
        }
    }

    /// A commit has failed, and everything that was computed on it is undone: edits on their way to storage among it.
    func undoAdoptions() {
        guard containers.contains(where: { !$0.adopting.isEmpty }) else { return }
        adoptionRetry.next()
        let pause = adoptionRetry.pauseNanoseconds
        for container in containers where !container.adopting.isEmpty {
            let paths = Array(container.adopting.keys)
            container.adopting = [:]
            container.files?.lookAgain(at: paths, after: pause)
        }
    }
}
