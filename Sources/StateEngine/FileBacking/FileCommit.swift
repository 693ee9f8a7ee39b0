/// What the transactions of a batch come to: one change for each key that they touch, the last.
struct FileCommit {
    /// One key's.
    struct Change {
        let path: FilePath
        /// With bytes of its own: a commit whose outcome is unknown needs them after the batch is gone.
        let adopted: AdoptedChange
        /// What is in the file's place before, with its mode and owner.
        var old: FileStatus?
    }

    /// In order of revision and ordinal.
    var changes: [Change] = []
    let lastRevision: Int64
    /// How it is done, once the new files are written.
    var steps: [FileStep] = []

    init(_ batch: borrowing CommitBatch) throws {
        lastRevision = batch.lastRevision
        var last: [FilePath: Int] = [:]
        var all: [Change] = []
        try batch.forEachChange { change in
            let path = try FileName.path(of: change.key)
            last[path] = all.count
            all.append(Change(path: path, adopted: AdoptedChange(change)))
        }
        for (index, change) in all.enumerated() where last[change.path] == index {
            changes.append(change)
        }
    }

    /// The files that it takes away.
    var deleted: Set<FilePath> {
        Set(changes.lazy.filter { $0.adopted.value == nil }.map(\.path))
    }
}
