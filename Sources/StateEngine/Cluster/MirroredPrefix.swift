/// The keys that a cluster has: all those with one prefix.
///
/// Only its link changes them here, in the order of the cluster.
package final class MirroredPrefix: Sendable {
    /// Ends in `/`.
    package let bytes: [UInt8]
    /// The beginning of the keys that the links write for themselves.
    private let own: [UInt8]

    package init(_ prefix: [UInt8]) {
        bytes = prefix
        own = prefix + Array(".stated/".utf8)
    }

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

    /// Whether a key is one that the links write for themselves.
    package func isOwn(_ key: Bytes) -> Bool { own.withUnsafeBytes { key.hasPrefix($0) } }

    /// All keys with a prefix, without those that the links write for themselves.
    func ranges(of prefix: [UInt8]) -> [ClusterAttempt.Range] {
        guard own.starts(with: prefix) else {
            return prefix.starts(with: own)
                ? [] : [ClusterAttempt.Range(start: prefix, end: MirroredPrefix.end(of: prefix))]
        }
        return [
            ClusterAttempt.Range(start: prefix, end: own),
            ClusterAttempt.Range(
                start: MirroredPrefix.end(of: own),
                end: MirroredPrefix.end(of: prefix)
            ),
        ]
    }

    /// The first name after all that begin with a prefix: no byte of a key is 0xFF.
    private static func end(of prefix: [UInt8]) -> [UInt8] {
        prefix.last.map { prefix.dropLast() + [$0 + 1] } ?? []
    }

    /// Nobody asks the cluster, or nobody may change the key.
    @inline(never)
    func refusal(of key: Bytes) -> StateError {
        let prefix = bytes.withUnsafeBytes { StateError.quoted($0) }
        return StateError(
            .rejected,
            isOwn(key)
                ? "key \(StateError.quoted(key)) is for the links of the cluster: choose another"
                : "key \(StateError.quoted(key)) belongs to the cluster, of which \(prefix) is a "
                    + "copy that can only be read here"
        )
    }
}
