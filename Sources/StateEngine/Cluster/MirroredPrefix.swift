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
        guard let end = MirroredPrefix.end(of: prefix) else { return [] }
        guard own.starts(with: prefix), let ownEnd = MirroredPrefix.end(of: own) else {
            return prefix.starts(with: own) ? [] : [ClusterAttempt.Range(start: prefix, end: end)]
        }
        return [
            ClusterAttempt.Range(start: prefix, end: own),
            ClusterAttempt.Range(start: ownEnd, end: end),
        ]
    }

    /// The first key after all that begin with a prefix; nil if it is 0xFF throughout.
    private static func end(of prefix: [UInt8]) -> [UInt8]? {
        var end = prefix
        while let last = end.popLast() {
            if last < 0xFF { return end + [last + 1] }
        }
        return nil
    }

    /// Nobody asks the cluster, or nobody may change the key.
    @inline(never)
    func refusal(of key: Bytes) -> StateError {
        let prefix = bytes.withUnsafeBytes { StateError.quoted($0) }
        return StateError(
            .rejected,
            isOwn(key)
                ? "key \(StateError.quoted(key)) is one of the links of the cluster"
                : "key \(StateError.quoted(key)) belongs to the cluster, of which \(prefix) is a "
                    + "copy that can only be read here"
        )
    }
}
