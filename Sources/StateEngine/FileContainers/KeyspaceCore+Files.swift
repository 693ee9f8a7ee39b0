/// Keys that live in files.
extension KeyspaceCore {
    /// Refuses a key that no file can have, a key whose file cannot be written now, and a key below
    /// or above another that lives in the same directory.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming both keys, or the obstacle.
    /// - Complexity: O(*n*) in the bytes of the key, once for each segment.
    func checkFile(
        of key: Bytes,
        in files: FileContainers,
        isDelete: Bool = false
    ) throws(StateError) {
        guard !transaction.isOfFiles, let container = files.container(of: key) else { return }
        try container.validate(key, isDelete: isDelete)
        if !isDelete {
            try checkNesting(of: key, from: container.keys.prefix.count, container.keys.holds)
        }
    }

    /// As many edits as fit in one transaction, at least one.
    func prefix(of found: ArraySlice<FoundFile>) -> ArraySlice<FoundFile> {
        var byteCount = 0
        var count = 0
        for file in found {
            byteCount += file.key.bytes.count + (file.value?.count ?? 0)
            guard count == 0 || byteCount <= admission.limits.transactionByteCount,
                count < admission.limits.transactionChangeCount
            else { break }
            count += 1
        }
        return found.prefix(count)
    }

    /// Makes edits one transaction, as far as the rules allow them.
    ///
    /// - Parameters:
    ///   - found: The edits.
    ///   - shortage: Why values may not grow; nil if there is memory.
    /// - Returns: The result for each.
    func adopt(_ found: ArraySlice<FoundFile>, _ shortage: StateError?) -> [FileAdoption] {
        let writer = found.first { $0.value != nil }?.writer ?? .file(uid: .max, gid: .max)
        let cause = retainCause(writer)
        defer { release(cause) }
        // Nobody is answered: the files hold the edits already.
        var receipt = Receipt()
        begin(cause, at: LocalKeyspace.now())
        transaction.isOfFiles = true
        defer { (transaction.isOfFiles, transaction.nextOwner) = (false, nil) }
        var outcomes = Array(repeating: FileAdoption.same, count: found.count)
        // Order matters: a key may be replaced by keys below it, and the reverse.
        for isRemoval in [true, false] {
            for (index, file) in found.enumerated() where (file.value == nil) == isRemoval {
                outcomes[index] = adopt(file, shortage, &receipt)
            }
        }
        finish(&receipt)
        return outcomes
    }

    private func adopt(
        _ file: FoundFile,
        _ shortage: StateError?,
        _ receipt: inout Receipt
    ) -> FileAdoption {
        transaction.nextOwner = file.status?.uid
        do throws(StateError) {
            return try file.key.bytes.withBorrowed { (key) throws(StateError) in
                let newest = peek(key)?.value
                guard let value = file.value else {
                    return try delete(key, &receipt) ? .adopted(transaction.revision) : .same
                }
                return try value.withBorrowed { (value) throws(StateError) in
                    if let newest, newest.isEqual(to: value) { return .same }
                    if let shortage, value.count > newest?.count ?? -1 { throw shortage }
                    try set(key, to: value)
                    return .adopted(transaction.revision)
                }
            }
        } catch {
            return .refused(error)
        }
    }
}
