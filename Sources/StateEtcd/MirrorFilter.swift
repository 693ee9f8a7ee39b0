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

    /// The key whose value a batch compares, and the one that says who wrote it.
    func sessionKey(of node: String) -> [UInt8] { own + Array("session/\(node)".utf8) }
    func writersKey(of node: String) -> [UInt8] { own + Array("by/\(node)".utf8) }

    /// The node that has signed what else came at the same revision; nil if the key is no signature.
    func signer(_ key: [UInt8]) -> [UInt8]? {
        let start = own + Array("by/".utf8)
        return key.starts(with: start) ? Array(key.dropFirst(start.count)) : nil
    }

    /// A key that was left out and that a command, which cannot know it, would delete with others.
    func firstRefused(clearedBy words: [[UInt8]]) -> [UInt8]? {
        guard !refused.isEmpty else { return nil }
        func order(_ a: [UInt8], _ b: [UInt8]) -> Bool { a.lexicographicallyPrecedes(b) }
        for index in words.indices where words[index] == Array("CLEAR".utf8) {
            let (start, end) = (words[index + 1], words[index + 2])
            if let key = refused.first(where: { !order($0, start) && order($0, end) }) {
                return key
            }
        }
        return nil
    }

    /// The arguments of a change for STATE.MIRROR COMMIT; empty if it is left out.
    mutating func arguments(of event: EtcdEvent) -> [[UInt8]] {
        let entry = event.entry
        guard !entry.key.starts(with: own) else { return [] }
        let name = MirrorFilter.name(of: entry.key)
        let wasRefused = refused.contains(name)
        if event.isDelete {
            refused.remove(name)
            guard !wasRefused, MirrorFilter.isKey(entry.key) else { return [] }
            return [Array("DELETE".utf8), entry.key]
        }
        guard MirrorFilter.isKey(entry.key) else {
            refuse(entry.key)
            return []
        }
        guard entry.value.count <= valueByteCount else {
            refuse(entry.key)
            return wasRefused || entry.version == 1 ? [] : [Array("DELETE".utf8), entry.key]
        }
        refused.remove(name)
        let word = wasRefused ? "REPLACE" : "SET"
        return [Array(word.utf8), entry.key, MirrorFilter.numbers(of: entry), entry.value]
    }

    /// The arguments of a row for STATE.MIRROR ROWS; empty if it is left out.
    mutating func arguments(of entry: EtcdEntry) -> [[UInt8]] {
        guard !entry.key.starts(with: own) else { return [] }
        guard MirrorFilter.isKey(entry.key), entry.value.count <= valueByteCount else {
            refuse(entry.key)
            return []
        }
        return [entry.key, MirrorFilter.numbers(of: entry), entry.value]
    }

    /// The version, and when the key ends by itself.
    private static func numbers(of entry: EtcdEntry) -> [UInt8] {
        let time = MirrorLease.deadline(of: entry.lease).map { ":\($0)" } ?? ""
        return Array("\(entry.version)\(time)".utf8)
    }

    /// Before all rows come anew.
    mutating func removeAll() { refused = [] }

    private mutating func refuse(_ key: [UInt8]) {
        if refused.count < MirrorFilter.refusedCount { refused.insert(MirrorFilter.name(of: key)) }
    }

    /// A key, or so much of it that it is distinct from others: etcd allows megabytes.
    private static func name(of key: [UInt8]) -> [UInt8] {
        key.count <= Key.maximumByteCount
            ? key : Array(key.prefix(Key.maximumByteCount)) + Array("\(key.count)".utf8)
    }

    private static func isKey(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { Key.fault(of: $0) } == nil
    }
}
