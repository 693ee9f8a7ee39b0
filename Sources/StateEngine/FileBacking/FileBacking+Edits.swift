/// Edits by others.
extension FileBacking {
    /// Reads every value at the start, and removes the new files that a crash left behind.
    ///
    /// - Returns: How many there are.
    func readAll(_ files: FileDirectory, _ receive: (borrowing StoredChange) -> Void) -> Int {
        var ordinal: Int32 = 0
        for path in files.collectAll() {
            guard let change = look(at: path, isWritten: false, in: files), let value = change.value
            else { continue }
            let fields = Record.Fields(
                revision: 1,
                created: 1,
                version: 1,
                time: change.time,
                ordinal: ordinal,
                owner: change.writer?.uid ?? .max,
                cause: 0
            )
            let cause = Array((change.writer?.description ?? "").utf8)
            AdoptedChange(fields, key: change.key, value: value, cause: cause).withStored(receive)
            ordinal += 1
        }
        return Int(ordinal)
    }

    /// What others have changed and are no longer writing.
    public func takeOutsideChanges() -> [OutsideChange] {
        guard let files else { return [] }
        let places = files.takeDue()
        let found = places.compactMap { look(at: $0.path, isWritten: $0.isWritten, in: files) }
        if !found.isEmpty { files.syncParents(of: places.lazy.map(\.path)) }
        files.finishLook()
        defer { met = [] }
        let again = Set(found.map(\.key))
        return met.filter { !again.contains($0.key) } + found
    }

    /// Reads one place, and records what is there.
    ///
    /// - Returns: Its contents, if they may be new; nil if nothing changed, it holds no value, or
    ///   it is still being written.
    func look(at path: FilePath, isWritten: Bool, in files: FileDirectory) -> OutsideChange? {
        guard let found = files.look(at: path, isWritten: isWritten) else { return nil }
        return OutsideChange(
            key: found.key.bytes,
            value: found.value,
            writer: found.writer,
            time: found.status.map { $0.stamp.modified / 1_000_000 } ?? LocalKeyspace.now()
        )
    }
}
