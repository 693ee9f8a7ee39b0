/// Transactions with keys of a cluster.
extension Transaction {
    /// Makes a change of a cluster; see ``KeyspaceCore/mirror(_:_:version:)``.
    package mutating func mirror(
        _ key: Bytes,
        _ value: Bytes?,
        version: Int64,
        expires: Int64? = nil
    ) throws(StateError) {
        try core.mirror(key, value, version: version, expires: expires)
    }

    /// It depends on all keys of the cluster that a pattern may match.
    package mutating func noteRead(of patterns: PatternSet) {
        for pattern in patterns.patterns { core.noteRead(of: pattern) }
    }
}
