package import StateModel

/// The scripts of EVAL that are known: each is a compare-and-set, which the daemon carries out
/// itself.
///
/// Nothing interprets Lua here. A script is recognised by the SHA-1 of its text, or by that of its
/// *plain form*: without comments, blanks and semicolons, in lower case, with single quotes. So one
/// row covers a script however a library writes it, and the source has no texts of others. SCRIPT
/// LOAD returns the SHA-1 of the text, as in Redis; ``LoadedScripts`` remembers it if only its plain
/// form is known.
package enum KnownScript: Sendable, CaseIterable {
    /// Deletes KEYS[1] if its value is ARGV[1]; returns 1, else 0.
    case release
    /// The same for every key; returns how many were deleted.
    case releaseAll
    /// If the value of KEYS[1] is ARGV[1], it expires after ARGV[2] ms; returns 1, else 0.
    case expireInMilliseconds
    /// The same in seconds.
    case expireInSeconds
    /// The same; ARGV[3] "0" adds ARGV[2] to what is left, and a key without a time stays as it is.
    case extend
    /// If the value of each key is ARGV[1], each is set again and expires after ARGV[2] ms; returns
    /// how many, else 0.
    case extendAll
    /// Sets all keys to ARGV[1] for ARGV[2] ms if all are absent; returns how many, else 0.
    case acquireAll
    /// Sets KEYS[1] to ARGV[1] for ARGV[2] s if it is absent (1) or renews it if it has that value
    /// (2); else 0.
    case acquireOrRenew
    /// The same in milliseconds, with OK, or an error.
    case acquireOrFail
    /// Deletes KEYS[1] if its value is ARGV[1] (1), OK if it is absent, else an error.
    case releaseOrFail
    /// The seconds that KEYS[1] has left if its value is ARGV[1], else an error.
    case timeLeftOrFail
    /// The milliseconds that KEYS[1] has left if its value is ARGV[1] and it expires, else 0.
    case timeLeft
    /// What PTTL returns if the value of KEYS[1] is ARGV[1], else 0.
    case anyTimeLeft
    /// The same, else -3.
    case timeLeftOrMinus3
    /// Adds ARGV[2] to KEYS[1]; if that is the sum, the key expires after ARGV[1] s; returns the sum.
    case addWithin
    /// The same with 1.
    case countInSeconds
    /// The same with 1, in ms.
    case countInMilliseconds
    /// Sets KEYS[1] to ARGV[1] if that is larger, or it is no number; returns it, else null.
    case raise
    /// Deletes the keys that match the glob KEYS[1]; returns how many.
    case deleteMatches
    /// The counters of a window that slides: KEYS[1] the one before, KEYS[2] the current one.
    case windowCounts
    /// Adds ARGV[3] to the current one unless the weighted sum exceeds ARGV[1]; windows of ARGV[2] s.
    case acquireInWindow
    /// 0 if the value of KEYS[1] is ARGV[1], which is deleted; else 1.
    case unlock
    /// 0 if the value of KEYS[1] is ARGV[1], which then expires after ARGV[2] s; 1 if it is another;
    /// 2 if it does not expire.
    case relock
    /// Deletes KEYS[1]; returns how many were deleted.
    case resetLock
    /// Deletes all keys that begin with `lock:`; returns how many.
    case resetLocks

    /// Whose scripts they are, for the documentation and for tests.
    package struct Row: Sendable {
        package let script: KnownScript
        package let library: StaticString
        /// Of the text as that library sends it; nil if only the plain form is known.
        package let exact: SHA1?
        package let plain: SHA1

        init(
            _ script: KnownScript,
            _ library: StaticString,
            exact: String? = nil,
            plain: String
        ) {
            guard let digest = SHA1(plain) else {
                preconditionFailure("\(plain) is not a SHA-1")
            }
            (self.script, self.library) = (script, library)
            (self.exact, self.plain) = (exact.flatMap { SHA1($0) }, digest)
        }
    }

    /// No known script is as long: hashing one takes time.
    private static let longestByteCount = 8_192

    /// The script with this text.
    package init?(text: Bytes) {
        guard text.count <= KnownScript.longestByteCount else { return nil }
        let (exact, plain) = (SHA1(of: text), SHA1(of: KnownScript.plainForm(of: text)))
        let row = KnownScript.rows.first { $0.exact == exact || $0.plain == plain }
        guard let row else { return nil }
        self = row.script
    }

    /// The script whose text, as its library sends it, has this SHA-1.
    package init?(_ digest: SHA1) {
        guard let row = KnownScript.rows.first(where: { $0.exact == digest }) else { return nil }
        self = row.script
    }

    private static func plainForm(of text: Bytes) -> [UInt8] {
        var plain: [UInt8] = []
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            switch byte {
            case UInt8(ascii: "-") where index < text.count && text[index] == byte:
                while index < text.count, text[index] != UInt8(ascii: "\n") { index += 1 }
            case 9...13, UInt8(ascii: " "), UInt8(ascii: ";"): break
            case UInt8(ascii: "\""): plain.append(UInt8(ascii: "'"))
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): plain.append(byte + 32)
            default: plain.append(byte)
            }
        }
        return plain
    }
}

/// Scripts that SCRIPT LOAD has named, whose plain form is known.
///
/// They are forgotten when the daemon ends, as in Redis: clients load them again.
package struct LoadedScripts {
    private var scripts: [SHA1: KnownScript] = [:]
    /// A client could send one script with ever other blanks.
    private static let capacity = 1_000

    package init() {}

    package subscript(digest: SHA1) -> KnownScript? { KnownScript(digest) ?? scripts[digest] }

    package mutating func add(_ script: KnownScript, _ digest: SHA1) {
        if scripts.count >= LoadedScripts.capacity { scripts.removeAll() }
        scripts[digest] = script
    }

    package mutating func removeAll() { scripts.removeAll() }
}
