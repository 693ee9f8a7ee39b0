import StateEngine
package import StateLog
import StateModel

extension CodedCommits {
    /// One commit of one change.
    package init(_ revision: Int64, key: String = "key", value: [UInt8], previous: Int64 = 0) {
        var coder = CommitCoder(at: 0)
        let nobody = Bytes(start: nil, count: 0)
        coder.begin(revision, at: 0, cause: nobody)
        Array(key.utf8).withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                let change = StoredChange(
                    revision: revision,
                    ordinal: 0,
                    key: key,
                    value: value,
                    created: revision,
                    owner: 0,
                    version: 1,
                    time: 0,
                    cause: nobody,
                    previousRevision: previous,
                    previousOrdinal: 0
                )
                coder.append(change, cause: nobody)
            }
        }
        self = coder.commits
    }
}
