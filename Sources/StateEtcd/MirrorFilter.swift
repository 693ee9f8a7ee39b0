import StateModel
import StateWire

/// Which keys of the cluster can be here, and how its changes are named to the daemon.
///
/// A key that is not one of ours, and a value over the daemon's limit, are left out and counted.
struct MirrorFilter {
    let prefix: [UInt8]
    /// The largest value.
    let valueByteCount: Int
    /// The keys of the link's own, below the prefix so that they come in the same stream.
    private let own: [UInt8]
    /// The keys that were left out; so many at most.
    private(set) var refused: Set<[UInt8]> = []
    private static let refusedCount = 100_000

    init(prefix: [UInt8], valueByteCount: Int) {
        (self.prefix, self.valueByteCount) = (prefix, valueByteCount)
        own = prefix + Array(".stated/".utf8)
    }

    /// The key that a node sets to see that nothing is missing.
    func beatKey(of node: String) -> [UInt8] { own + Array("beat/\(node)".utf8) }

    /// The arguments of a change for STATE.MIRROR COMMIT; empty if it is left out.
    mutating func arguments(of event: EtcdEvent) -> [[UInt8]] {
        let entry = event.entry
        guard !entry.key.starts(with: own), isKey(entry.key) else { return [] }
        let wasRefused = refused.contains(entry.key)
        if event.isDelete {
            refused.remove(entry.key)
            return wasRefused ? [] : [Array("DELETE".utf8), entry.key]
        }
        guard entry.value.count <= valueByteCount else {
            refuse(entry.key)
            return wasRefused || entry.version == 1 ? [] : [Array("DELETE".utf8), entry.key]
        }
        if wasRefused { refused.remove(entry.key) }
        let word = wasRefused ? "REPLACE" : "SET"
        return [Array(word.utf8), entry.key, Array("\(entry.version)".utf8), entry.value]
    }

    /// The arguments of a row for STATE.MIRROR ROWS; empty if it is left out.
    mutating func arguments(of entry: EtcdEntry) -> [[UInt8]] {
        guard !entry.key.starts(with: own), isKey(entry.key) else { return [] }
        guard entry.value.count <= valueByteCount else {
            refuse(entry.key)
            return []
        }
        return [entry.key, Array("\(entry.version)".utf8), entry.value]
    }

    /// Before all rows come anew.
    mutating func removeAll() { refused = [] }

    private mutating func refuse(_ key: [UInt8]) {
        if refused.count < MirrorFilter.refusedCount { refused.insert(key) }
    }

    private mutating func isKey(_ bytes: [UInt8]) -> Bool {
        guard bytes.withUnsafeBytes({ Key.fault(of: $0) }) != nil else { return true }
        refuse(bytes)
        return false
    }
}
