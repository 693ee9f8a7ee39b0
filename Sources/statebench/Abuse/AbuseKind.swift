/// A way in which one client may try to keep the daemon from serving others.
enum AbuseKind: String, CaseIterable {
    /// KEYS of a glob that matches few of all keys, pipelined.
    case keys
    /// EXEC of 400 KEYS.
    case exec
    /// KEYS of a glob of 128 KiB.
    case glob
    /// SCAN of everything, with few matches.
    case scan
    /// STATE.LIST, STATE.CHECK, and dry runs of STATE.DELETE, with globs.
    case list
    /// SETs of a long key that 500 globs watch.
    case watches
    /// PUBLISH to a long channel with 200 pattern subscriptions.
    case patterns
    /// 400 watches of 10 globs that end at once, among 4,000 globs.
    case endings
    /// STATE.DELETE of a glob, of 1,000 keys each time.
    case delete
    /// EXEC of 2,000 SETs.
    case transactions
    /// A value that expires, set again and again.
    case leases
    /// STATE.HISTORY of values of 4 MiB, by 20 clients that leave.
    case history
    /// 50 SETs of 4 MiB, of which 1 MiB is sent.
    case half
    /// Values of 4 MiB that 20 clients ask for and do not read.
    case deaf
    /// Commands that are refused.
    case errors
    /// Clients that connect and leave.
    case arrivals
    /// PUBSUB CHANNELS of 100,000 channels.
    case channels
    /// MGET of four times the same value of 8 MiB, by 4 clients.
    case values
    /// APPEND of one byte to a value of almost 8 MiB, by 4 clients.
    case appends
    /// MSET of 100 keys in files, 30 directories deep.
    case files
    /// 900 clients that keep copies of the same 1,000 keys, and leave together.
    case copies
    /// 900 clients that WATCH 300 keys, and leave together.
    case watched

    /// The prefix of the keys that the abuser may set.
    static let folder = "abuse/"
    /// The key of large values.
    static let large = folder + "large"
    /// How long the large value is; 0 if it is not needed.
    var largeByteCount: Int {
        switch self {
        case .history, .deaf: 4 << 20
        case .values, .appends: 8 << 20 - 1 << 16
        default: 0
        }
    }

    /// The first commands of a connection; those of bystanders have numbers below 0.
    func preparation(of number: Int) -> [[String]] {
        switch self {
        case .copies: [["CLIENT", "TRACKING", "ON"]]
        case .channels where number < 0:
            [["SUBSCRIBE"] + (0..<1_000).map { "\(AbuseKind.folder)channel/\(number)/\($0)" }]
        case .watches:
            [["HELLO", "3"]] + (0..<500).map { ["STATE.WATCH", AbuseKind.costlyGlob($0)] }
        case .patterns:
            [["HELLO", "3"]] + (0..<200).map { ["PSUBSCRIBE", AbuseKind.costlyGlob($0)] }
        case .endings:
            [["HELLO", "3"]]
                + (0..<400).map { number in
                    ["STATE.WATCH"] + (0..<10).map { AbuseKind.costlyGlob(number * 10 + $0) }
                }
        default: []
        }
    }

    /// The commands that each connection repeats.
    var request: [[String]] {
        let folder = AbuseKind.folder
        switch self {
        case .keys: return Array(repeating: ["KEYS", "*zz"], count: 50)
        case .exec:
            return [["MULTI"]] + Array(repeating: ["KEYS", "*zz"], count: 400) + [["EXEC"]]
        case .glob: return [["KEYS", "*[" + String(repeating: "x", count: 128 << 10) + "]"]]
        case .scan: return [["SCAN", "0", "MATCH", "*zz", "COUNT", "1000000"]]
        case .list:
            return [
                ["STATE.LIST", "*zz"], ["STATE.CHECK", "*zz"], ["STATE.DELETE", "*zz", "DRYRUN"],
            ]
        case .watches: return [["SET", AbuseKind.longName, "v"]]
        case .patterns: return [["PUBLISH", AbuseKind.longName, "v"]]
        case .delete:
            let pairs = (0..<1_000).flatMap { [folder + "delete/\($0)", "v"] }
            return [["MSET"] + pairs, ["STATE.DELETE", folder + "delete/*"]]
        case .transactions:
            let sets = (0..<2_000).map { ["SET", folder + "set/\($0)", "v"] }
            return [["MULTI"]] + sets + [["EXEC"]]
        case .leases:
            return Array(repeating: ["SET", folder + "lease", "v", "PX", "3600000"], count: 100)
        case .history: return [["STATE.HISTORY", AbuseKind.large]]
        case .deaf: return Array(repeating: ["GET", AbuseKind.large], count: 100)
        case .errors: return Array(repeating: ["SET", "denied", "v"], count: 50) + [["NOSUCH"]]
        case .arrivals: return [["PING"]]
        case .copies: return [["MGET"] + (0..<1_000).map { "\(folder)copied/\($0)" }]
        case .watched: return [["WATCH"] + (0..<300).map { "\(folder)watched/\($0)" }]
        case .channels: return [["PUBSUB", "CHANNELS"]]
        case .values:
            return Array(
                repeating: ["MGET"] + Array(repeating: AbuseKind.large, count: 4),
                count: 4
            )
        case .appends: return Array(repeating: ["APPEND", AbuseKind.large, "v"], count: 10)
        case .files:
            let directory = folder + "files/" + String(repeating: "a/", count: 28)
            return [["MSET"] + (0..<100).flatMap { ["\(directory)\($0)", "v"] }]
        case .endings, .half: return []
        }
    }

    /// How many connections are open at once.
    var connectionCount: Int {
        switch self {
        case .history, .deaf: 20
        case .half: 50
        case .values, .appends: 4
        case .copies, .watched: 900
        default: 1
        }
    }

    /// Whether a connection closes after it has sent its request.
    var leaves: Bool { [.endings, .history, .arrivals].contains(self) }

    /// How many connections only prepare, and stay.
    var bystanderCount: Int {
        switch self {
        case .endings: 1
        case .channels: 100
        default: 0
        }
    }

    /// Whether all connections leave at once, half a second after each has sent its request.
    var leavesTogether: Bool { self == .copies || self == .watched }

    /// Whether replies are read.
    var reads: Bool { self != .deaf }

    /// The unfinished command that a connection sends; empty for the other kinds.
    var half: [UInt8] {
        guard self == .half else { return [] }
        let count = 4 << 20
        return Array("*3\r\n$3\r\nSET\r\n$10\r\n\(AbuseKind.folder)half\r\n$\(count)\r\n".utf8)
            + Array(repeating: UInt8(ascii: "v"), count: 1 << 20)
    }

    private static let longName = folder + String(repeating: "a", count: 1_000)

    /// A glob that ``longName`` does not match only after each of its bytes was compared with each
    /// byte of the glob.
    private static func costlyGlob(_ number: Int) -> String {
        folder + "*[" + String(repeating: "x", count: 900) + "a]b\(number)"
    }
}
