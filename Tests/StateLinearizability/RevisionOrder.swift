/// What must hold of revisions across keys: one number of the whole keyspace, which rises with the commits.
package enum RevisionOrder {
    /// The operations whose revisions contradict each other.
    ///
    /// A write that was sent after a revision had been told has a higher one, and no two writes have the same.
    ///
    /// - Complexity: O(*n* log *n*).
    package static func faults(in history: [Operation]) -> [String] {
        var faults: [String] = []
        var writers: [Int64: Operation] = [:]
        let told = history.filter { $0.deliveredRevision != nil }.sorted { $0.ended < $1.ended }
        var next = 0
        var highest: (revision: Int64, operation: Operation)?
        for operation in history.sorted(by: { $0.invoked < $1.invoked }) {
            while next < told.count, told[next].ended < operation.invoked {
                let revision = told[next].deliveredRevision ?? 0
                if revision > highest?.revision ?? 0 { highest = (revision, told[next]) }
                next += 1
            }
            guard case .revision(let revision) = operation.outcome else { continue }
            if let other = writers.updateValue(operation, forKey: revision) {
                faults.append("two writes at one revision: \(other.line); \(operation.line)")
            }
            if let highest, revision <= highest.revision {
                faults.append("a revision goes back: \(highest.operation.line); \(operation.line)")
            }
        }
        return faults
    }
}

extension Operation {
    /// The revision of a commit that the answer tells of.
    fileprivate var deliveredRevision: Int64? {
        switch outcome {
        case .revision(let revision), .conflict(let revision): revision
        case .entry(let entry): entry?.revision
        default: nil
        }
    }

    fileprivate var line: String { "client \(client), '\(key)', \(request): \(outcome)" }
}
