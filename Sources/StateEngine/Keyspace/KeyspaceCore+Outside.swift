/// A store that others change too.
extension KeyspaceCore {
    /// Refuses a key that the store cannot hold, and one below or above another.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming both keys, or the error of the backing.
    /// - Complexity: O(*n*) in the bytes of the key, once for each segment.
    func checkPlace(of key: Bytes, in editable: any EditableBacking) throws(StateError) {
        try editable.validate(key)
        guard editable.keysArePaths else { return }
        try checkNesting(of: key, from: 0) { _ in true }
    }

    /// Refuses a key below or above another that has its file in the same directory.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - start: The index of the first byte that belongs to the path of its file.
    ///   - isBeside: Whether another key has its file in the same directory.
    /// - Throws: ``StateError/Code/rejected``, naming both keys.
    func checkNesting(
        of key: Bytes,
        from start: Int,
        _ isBeside: (Bytes) -> Bool
    ) throws(StateError) {
        for index in key.indices where key[index] == UInt8(ascii: "/") && index > start {
            guard let above = entries.head(key.slice(0, index)), !above.isDeleted,
                isBeside(above.key)
            else { continue }
            throw KeyspaceCore.nested(StateError.quoted(key), below: shown(above))
        }
        var below: Record?
        let prefix = Array(key) + [UInt8(ascii: "/")]
        prefix.withUnsafeBytes { prefix in
            entries.live.forEach(prefix: prefix, after: nil) { record in
                if !record.isDeleted, isBeside(record.key) { below = record }
                return below == nil
            }
        }
        if let below { throw KeyspaceCore.nested(shown(below), below: StateError.quoted(key)) }
    }

    private static func nested(_ key: String, below above: String) -> StateError {
        StateError(
            .rejected,
            "key \(key) is below key \(above), which is a file and cannot be a directory"
        )
    }

    /// How an entry is named to the writer: not at all if the writer may not read it.
    private func shown(_ record: Record) -> String {
        let isSeen = visibility(of: transaction.subject).mayReveal(.read, about: record)
        return isSeen ? StateError.quoted(record.key) : "(hidden)"
    }

    /// The changes that differ from what is on stable storage.
    func differing(_ changes: [OutsideChange]) -> [OutsideChange] {
        changes.filter { change in
            change.key.withUnsafeBytes { key in
                guard let present = readDurable(key)?.value else { return change.value != nil }
                return !(change.value?.withUnsafeBytes { $0.isEqual(to: present) } ?? false)
            }
        }
    }

    /// Adopts the changes of others as one commit, and publishes it; nothing may be provisional.
    func adopt(outside changes: [OutsideChange]) {
        let revision = revisions.next
        let writer = changes.lazy.compactMap(\.writer).first ?? .file(uid: .max, gid: .max)
        let cause = Array(writer.description.utf8)
        let adopted = changes.enumerated().map { ordinal, change in
            let current = change.key.withUnsafeBytes { readDurable($0) }
            return AdoptedChange(
                Record.Fields(
                    revision: revision,
                    created: current?.created ?? revision,
                    version: change.value == nil ? 0 : (current?.version ?? 0) + 1,
                    time: change.time,
                    ordinal: Int32(ordinal),
                    owner: current?.owner ?? change.writer?.uid ?? .max,
                    cause: 0
                ),
                key: change.key,
                value: change.value,
                cause: cause
            )
        }
        _ = adopt(adopted)
    }

    /// Repeats undone requests, in order, on the current state.
    ///
    /// A condition on the revision of an undone commit is replaced by the revision of its
    /// repetition.
    func repeatUndone(at time: Int64) {
        let undone = pending.takeAnswers()
        var became: [Int64: Int64] = [:]
        for answer in undone {
            let mutations = answer.mutations.map { $0.renumbered(became) }
            let again = perform(mutations, at: time, answer.completion)
            if case (.success(let old), .success(let new)) = (answer.result, again.result) {
                became[old] = new
            }
            pending.hold(again, above: revisions.durable)
        }
    }
}

extension LocalKeyspace {
    /// Waits until what others have changed by now is adopted.
    ///
    /// - Throws: ``StateError/Code/readOnly`` if the keyspace is closed.
    package func adoptOutsideChanges() throws(StateError) {
        checkMayWait()
        try onCommitThread { [queue] () throws(StateError) in queue.adoptEdits() }
    }
}

extension Mutation {
    /// The same with the revisions of conditions replaced.
    fileprivate func renumbered(_ became: [Int64: Int64]) -> Mutation {
        switch self {
        case .set(let key, let value, let revision?, let expiry):
            .set(key, value, ifRevision: became[revision] ?? revision, expires: expiry)
        case .delete(let key, let revision?):
            .delete(key, ifRevision: became[revision] ?? revision)
        case .check(let key, let revision):
            .check(key, revision: became[revision] ?? revision)
        case .set, .delete: self
        }
    }
}

extension Cause {
    /// The cause of an edit of a file: only the file's owner is known.
    package static func file(uid: UInt32, gid: UInt32) -> Cause {
        Cause(uid: uid, gid: gid, pid: 0, command: "file")
    }
}
