/// The keys that a cluster has: all those with one prefix.
///
/// Only its link changes them here, in the order of the cluster.
package final class MirroredPrefix: Sendable {
    /// Ends in `/`.
    package let bytes: [UInt8]

    package init(_ prefix: [UInt8]) { bytes = prefix }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package func holds(_ key: Bytes) -> Bool {
        bytes.withUnsafeBytes { key.hasPrefix($0) }
    }

    /// Whether a pattern may match one of its keys.
    package func meets(_ pattern: Pattern) -> Bool {
        let literal = pattern.literal
        return literal.starts(with: bytes)
            || pattern.kind != .key && bytes.starts(with: literal)
    }

    /// Refuses a change by anybody but the link.
    @inline(__always)
    func refuse(_ key: Bytes) throws(StateError) {
        if holds(key) { throw refusal(of: key) }
    }

    @inline(never)
    private func refusal(of key: Bytes) -> StateError {
        let prefix = bytes.withUnsafeBytes { StateError.quoted($0) }
        return StateError(
            .rejected,
            "key \(StateError.quoted(key)) belongs to the cluster, of which \(prefix) is a copy "
                + "that can only be read here; write it to etcd, for instance with etcdctl put"
        )
    }
}
