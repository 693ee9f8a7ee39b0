/// What reaches stable storage, and when.
extension FileSystem {
    /// Syncs one file or directory: what was done before an event.
    mutating func sync(_ file: Int, before event: Int, isDataOnly: Bool) {
        switch order {
        case .strict:
            files[file].flush(before: event) { !isDataOnly || !$0.isBesideData }
            if files[file].isDirectory {
                flushNames(before: event) { $0.places.contains { $0.directory == file } }
            }
        case .journal:
            files[file].flush(before: event) { _ in true }
            commitJournal(before: event)
        }
    }

    mutating func syncAll(before event: Int) {
        for index in files.indices { files[index].flush(before: event) { _ in true } }
        flushNames(before: event) { _ in true }
    }

    private mutating func commitJournal(before event: Int) {
        for index in files.indices where !files[index].pending.isEmpty {
            files[index].flush(before: event, where: \.isMetadata)
        }
        flushNames(before: event) { _ in true }
    }

    private mutating func flushNames(before event: Int, where isMeant: (NameChange) -> Bool) {
        var rest: [NameChange] = []
        for change in pendingNames {
            guard change.event < event, isMeant(change) else {
                rest.append(change)
                continue
            }
            for place in change.places {
                durableNames[place.directory]?[place.name] = place.file
                // What happened earlier to a name in another directory must not come after it.
                for index in rest.indices {
                    rest[index].places.removeAll {
                        $0.directory == place.directory && $0.name == place.name
                    }
                }
            }
        }
        pendingNames = rest
    }

    /// Puts all on stable storage, as time does.
    mutating func settle() {
        for index in files.indices { files[index].flush(before: .max) { _ in true } }
        for change in pendingNames {
            for place in change.places { durableNames[place.directory]?[place.name] = place.file }
        }
        pendingNames = []
    }
}
