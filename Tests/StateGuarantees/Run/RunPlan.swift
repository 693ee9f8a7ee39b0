import StateTestSupport

/// How much of what a run does.
package struct RunPlan: Sendable {
    /// Where everything random begins.
    package var seed: UInt64
    /// How long the writers write, in all.
    package var seconds = 600
    /// How often the daemon is killed meanwhile.
    package var killCount = 10
    package var writerCount = 8
    package var watcherCount = 20
    /// The longest pause of a writer between two transactions, in milliseconds.
    package var pauseMilliseconds = 40

    /// Makes a plan.
    package init(seed: UInt64) { self.seed = seed }

    /// So many of each of the four groups: the state is more than the daemon sends to who does not read it.
    static let groupSize = 250
    private static let groups = ["a", "b", "c/d", "e"]

    /// Every key that is ever written.
    static let keys = groups.flatMap { group in (0..<groupSize).map { "\(group)/\($0)" } }

    /// What the watchers ask for: watcher *n* for the *n*-th, and round again.
    static let patterns: [[WatchPattern]] = [
        ["/"], ["a/"], ["c/d/"], ["*/1?"], ["b/7"], ["e/", "a/3", "*5"], ["/"],
        ["a/", "a/*", "a/1"],
    ]

    /// The patterns of a watcher.
    static func patterns(of watcher: Int) -> [WatchPattern] { patterns[watcher % patterns.count] }
}

/// A value that names the write that it is from; every byte of it follows from that, so that a torn one shows.
///
/// ```
/// 3.4711#902#kqzv…      writer and transaction, how many letters follow, the letters
/// ```
enum RunValue {
    static func make(_ name: String, key: String) -> [UInt8] {
        var random = SplitMix(seed: hash(key, hash(name, 0xCBF2_9CE4_8422_2325)))
        let count = letterCount(&random)
        var bytes = Array("\(name)#\(count)#".utf8)
        bytes.reserveCapacity(bytes.count + count)
        // A word of the generator gives eight letters: the runs make and check megabytes a second.
        var word: UInt64 = 0
        for index in 0..<count {
            if index % 8 == 0 { word = random.next() }
            bytes.append(UInt8(97 + (word & 0xFF) % 26))
            word >>= 8
        }
        return bytes
    }

    /// The write that a value names; a sentence, which is the name of none, where it is not whole.
    static func name(of bytes: [UInt8], key: String) -> String {
        let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
        guard bytes == make(name, key: key) else {
            let begin = String(decoding: bytes.prefix(40), as: UTF8.self)
            return "\(bytes.count) bytes that nobody wrote: \(begin)"
        }
        return name
    }

    /// Mostly short, at times over several pages, seldom over many: a watcher that stalls falls behind in seconds.
    private static func letterCount(_ random: inout SplitMix) -> Int {
        switch random.next() % 100 {
        case 0: Int(random.next() % 100_000)
        case 1..<10: Int(random.next() % 8_000)
        default: Int(random.next() % 200)
        }
    }

    /// FNV-1a.
    private static func hash(_ text: String, _ begin: UInt64) -> UInt64 {
        text.utf8.reduce(begin) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
