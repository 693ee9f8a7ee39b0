import StateEngine
import StateWire

/// The comparison of what is here with all that a cluster has; its differences become one commit.
///
/// Nothing else changes these keys meanwhile, so only the differences need memory.
final class MirrorComparison {
    let history: String
    let reason: String
    private(set) var changes: [Change] = []
    /// How many of them concern a key that is here.
    private(set) var presentCount = 0
    /// The key up to which all was compared.
    private var last: [UInt8]?

    struct Change {
        let key: [UInt8]
        /// Nil: the cluster does not have it.
        let value: [UInt8]?
        let version: Int64
        let expires: Int64?
    }

    init(history: String, reason: String) { (self.history, self.reason) = (history, reason) }

    /// Compares the next rows.
    ///
    /// - Throws: ``StateError/Code/conflict`` if they are not in the order of their keys, or not of
    ///   the cluster.
    func compare(
        _ rows: [Command.MirrorChange],
        _ prefix: MirroredPrefix,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard let end = rows.last?.key else { return }
        if let row = rows.first(where: { !prefix.holds($0.key) }) {
            throw MirrorComparison.isForeign(row.key)
        }
        for (row, next) in zip(rows, rows.dropFirst()) where !row.key.precedes(next.key) {
            throw MirrorComparison.isOutOfOrder(next.key)
        }
        if let last, let first = rows.first?.key, !last.withUnsafeBytes({ $0.precedes(first) }) {
            throw MirrorComparison.isOutOfOrder(first)
        }
        var index = 0
        core.forEachMirrored(after: last, through: end) { record in
            while index < rows.count, rows[index].key.precedes(record.key) {
                add(rows[index])
                index += 1
            }
            guard index < rows.count, rows[index].key.isEqual(to: record.key) else {
                return drop(record)
            }
            let row = rows[index]
            index += 1
            guard !MirrorComparison.isSame(row, record) else { return }
            presentCount += 1
            add(row)
        }
        for row in rows[index...] { add(row) }
        last = Array(end)
    }

    private static func isSame(_ row: Command.MirrorChange, _ record: Record) -> Bool {
        guard row.version == record.version, record.storedExpiry == row.expires,
            let value = record.value, let other = row.value
        else { return false }
        return value.isEqual(to: other)
    }

    /// What is here after the last row, the cluster does not have.
    func finish(_ core: KeyspaceCore) {
        core.forEachMirrored(after: last, through: nil, drop)
    }

    private func add(_ row: Command.MirrorChange) {
        changes.append(
            Change(
                key: Array(row.key),
                value: row.value.map { Array($0) },
                version: row.version,
                expires: row.expires
            )
        )
    }

    private func drop(_ record: Record) {
        presentCount += 1
        changes.append(
            Change(key: Array(record.key), value: nil, version: 0, expires: nil)
        )
    }

    static func isForeign(_ key: Bytes) -> StateError {
        StateError(.conflict, "key \(StateError.quoted(key)) does not belong to the cluster")
    }

    private static func isOutOfOrder(_ key: Bytes) -> StateError {
        StateError(.conflict, "key \(StateError.quoted(key)) is not in the order of the rows")
    }
}
