/// What etcd must have at the position of a copy, if it is the same history.
///
/// A cluster that was restored from a snapshot has the same number. If its revision has passed the
/// position, what was written at the position shows it: the newest beat of this node up to there, and
/// all that was set at that very revision.
struct MirrorStamp {
    /// The newest beat of this node: its revision, a colon, its value; `-` without one.
    var beat = "-"
    /// A sum over the keys, versions and values that were set at the position.
    var changes: UInt64 = 0
    /// How many keys could not be copied.
    var refusedCount = 0

    init() {}

    /// - Returns: Nil if the text is not one of a link of this version.
    init?(_ text: String) {
        let parts = text.split(separator: "|", omittingEmptySubsequences: false)
        guard parts.count == 3, let changes = UInt64(parts[1], radix: 16), let count = Int(parts[2])
        else { return nil }
        (beat, self.changes, refusedCount) = (String(parts[0]), changes, count)
    }

    /// As the daemon stores it.
    var text: String { "\(beat)|\(String(changes, radix: 16))|\(refusedCount)" }

    static func beat(_ entry: EtcdEntry?) -> String {
        guard let entry else { return "-" }
        let isText = entry.value.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "|") }
        let value =
            isText && entry.value.count < 64 ? String(decoding: entry.value, as: UTF8.self) : "?"
        return "\(entry.modRevision):\(value)"
    }

    /// The same in whatever order they come.
    static func changes(_ entries: some Sequence<EtcdEntry>) -> UInt64 {
        entries.reduce(0) { sum, entry in
            // FNV-1a, with the lengths: http://www.isthe.com/chongo/tech/comp/fnv/
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            for byte in entry.key { add(byte) }
            for shift in 0..<8 { add(UInt8(truncatingIfNeeded: entry.version >> (8 * shift))) }
            add(UInt8(truncatingIfNeeded: entry.key.count))
            for byte in entry.value { add(byte) }
            return sum &+ hash
        }
    }
}
