package import StateEngine

extension LocalKeyspace {
    /// Compacts, and waits until that is done.
    @discardableResult
    package func compact(
        to revision: Int64? = nil,
        shrinks: Bool = false
    ) throws -> CompactionReply {
        let answer = Observed<Result<CompactionReply, StateError>?>(nil)
        try withCore { (core) throws(StateError) in
            try compact(to: revision, shrinks: shrinks, in: core) { result in
                answer.update { $0 = result }
            }
        }
        guard let result = answer.take({ $0 }) else {
            throw SystemFailure("a compaction was not answered within 20 s")
        }
        return try result.get()
    }
}
