/// The value of a key at a stamp: it contains both, and determines every byte, so that a torn or
/// misplaced value is detected.
///
/// ```
/// crash/3/set/17#4711#902#kqzvm…      key, stamp, how many letters follow, the letters
/// ```
enum CrashValue {
    static func make(key: String, stamp: Int) -> [UInt8] {
        var random = SplitMix(seed: UInt64(stamp) &* 31 &+ hash(key))
        let count = letterCount(&random)
        var bytes = Array("\(key)#\(stamp)#\(count)#".utf8)
        bytes.reserveCapacity(bytes.count + count)
        for _ in 0..<count { bytes.append(UInt8(97 + random.next(below: 26))) }
        return bytes
    }

    /// The stamp of a stored value, after all of its bytes were checked.
    static func stamp(of bytes: [UInt8], key: String) throws(BenchError) -> Int {
        let parts = bytes.split(separator: UInt8(ascii: "#"), maxSplits: 2)
        guard parts.count == 3, let stamp = Int(String(decoding: parts[1], as: UTF8.self)),
            bytes == make(key: key, stamp: stamp)
        else {
            let shown = String(decoding: bytes.prefix(80), as: UTF8.self)
            let text = "\(bytes.count) bytes that no writer sent: '\(shown)'"
            throw .broken(law: "no value is torn", key: key, text)
        }
        return stamp
    }

    /// Mostly within one page of a disk, sometimes over several, rarely over many.
    private static func letterCount(_ random: inout SplitMix) -> Int {
        switch random.next(below: 100) {
        case 0: random.next(below: 100_000)
        case 1..<10: random.next(below: 10_000)
        default: random.next(below: 200)
        }
    }

    /// FNV-1a.
    private static func hash(_ key: String) -> UInt64 {
        key.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
