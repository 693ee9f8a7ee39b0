/// What an open transaction has to do with files.
struct FileWork {
    /// A sync of a file or a directory takes as long as many keys in memory.
    static let stepsOfSync = 50

    /// Whether it adopts edits of files.
    var isAdoption = false
    /// Whose steps are limited; nil for nobody's.
    var writer: Subject?
    /// What the commit thread has to do: ``stepsOfSync`` for each file, and for each directory on
    /// its path that the file before it was not in.
    ///
    /// If the keys are in order, no directory counts twice.
    private(set) var steps = 0
    /// The key of the last file.
    private var last: [UInt8] = []

    /// Counts the file of a key, whose path begins at a byte of it.
    mutating func note(_ key: Bytes, from start: Int) {
        let same = zip(key, last).prefix { $0 == $1 }.count
        if same == key.count, same == last.count { return }
        let directories = key[max(start, same)...].count { $0 == UInt8(ascii: "/") }
        steps += FileWork.stepsOfSync * (1 + directories)
        last = Array(key)
    }
}

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
        guard !transaction.files.isAdoption, let container = files.container(of: key) else {
            return
        }
        let path = try container.keys.path(of: key)
        if !isDelete {
            try FileContainer.checkDepth(of: key, at: path, admission.limits)
        }
        try container.problems.validate(key, at: path, isDelete: isDelete)
        if !isDelete {
            try checkNesting(of: key, from: container.keys.prefix.count, container.keys.holds)
        }
        try takeFileSteps(key, from: container.keys.prefix.count)
    }

    /// Limits what the open transaction may do with files, unless its writer has admin rights.
    package func limitFiles(of writer: Subject) { transaction.files.writer = writer }

    /// Counts what the commit thread will do for the file of a key, and refuses it if that is too
    /// much for one transaction of a user without admin rights.
    private func takeFileSteps(_ key: Bytes, from start: Int) throws(StateError) {
        transaction.files.note(key, from: start)
        guard transaction.files.steps > admission.limits.fileStepCount,
            let writer = transaction.files.writer, adminDenial(of: writer) != nil
        else { return }
        throw StateError(
            .limit,
            "the files of this commit take more than \(admission.limits.fileStepCount) steps, "
                + "\(FileWork.stepsOfSync) for each file and each directory on its path, the limit "
                + "of users without admin rights (limits.steps); do it in parts"
        )
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
        transaction.files.isAdoption = true
        defer { (transaction.files.isAdoption, transaction.nextOwner) = (false, nil) }
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
