import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

struct ServerFuzzTests {
    @Test(arguments: Seed.each(2))
    func `20 clients that send anything leave the server well and the keyspace sound`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) {
            $0.limits.queueByteCount = 64 << 10
            $0.limits.valueByteCount = 4 << 10
            $0.limits.transactionByteCount = 16 << 10
            $0.outputByteCount = 32 << 10
            $0.inputByteCount = 256 << 10
            $0.replyByteCount = 64 << 10
            $0.scanCount = 8
        }
        var peers = try (0..<20).map { _ in try server.connect() }
        let deadline = ContinuousClock.now + .seconds(2)
        while ContinuousClock.now < deadline {
            let index = Int.random(in: 0..<peers.count, using: &random)
            if random.chance(2) { peers[index] = try server.connect() }
            var bytes = Noise.pipeline(&random)
            if random.chance(15) { Noise.spoil(&bytes, &random) }
            let isOpen = (try? peers[index].socket.sendAtOnce(bytes[...])) != nil
            // Some read everything, some little.
            let ended =
                random.chance(40) && (try? peers[index].socket.receiveAtOnce())?.isEmpty ?? false
            if ended || !isOpen { peers[index] = try server.connect() }
            if random.chance(1) { backing.fail(StateError(.noSpace, "the disk is full")) }
        }
        backing.open()
        #expect(try server.connect().ask("PING") == .simple("PONG"))
        for peer in peers { peer.socket.end() }
        #expect(try server.faultsAfterLeaving() == [])
        // Clients may be gone before the last of their commits: both sides are asked anew each time.
        try server.waitUntil("the last commit") { server.durable() == values(kept: backing) }
        #expect(
            zip(backing.kept, backing.kept.dropFirst()).allSatisfy { $0.revision <= $1.revision }
        )
    }

    /// The values that storage has.
    private func values(kept backing: HeldBacking) -> [String: String] {
        var values: [String: String] = [:]
        for change in backing.kept {
            values[change.key.withUnsafeBytes(\.text)] = change.value?.withUnsafeBytes(\.text)
        }
        return values
    }
}

/// Commands that make sense, commands that make none, and bytes that are no commands.
private enum Noise {
    private static let keys = ["a", "a/b", "a/b/c", "b", "n", "ä", "list/1", "list/2"]
    private static let patterns = ["/", "a/", "*", "*b*", "list/?", "a", "[a-z]", "\\a", "//", ""]
    private static let templates = [
        "GET k", "SET k v", "SET k v NX", "SET k v XX GET", "INCR n", "INCRBY n i", "APPEND k v",
        "DEL k k", "MSET k v k v", "MSETNX k v k v", "MGET k k k", "GETDEL k", "STRLEN k",
        "EXISTS k", "SET k v EX i", "SET k v PX i KEEPTTL", "SETEX k i v", "PSETEX k i v",
        "GETEX k", "GETEX k PX i", "GETEX k PERSIST", "EXPIRE k i", "PEXPIRE k i GT",
        "EXPIREAT k i", "PEXPIREAT k i LT", "TTL k", "PTTL k", "EXPIRETIME k", "PEXPIRETIME k",
        "SETNX k v", "GETSET k v", "GETRANGE k i i", "SETRANGE k i v", "INCRBYFLOAT k i",
        "MSETEX i k v k v", "DELEX k IFEQ v", "SET k v IFNE v", "DIGEST k", "RENAME k k",
        "RENAMENX k k", "COPY k k REPLACE", "RANDOMKEY", "OBJECT ENCODING k", "MEMORY USAGE k",
        "DUMP k", "RESTORE k i v", "CLIENT TRACKING ON", "CLIENT TRACKING OFF", "CLIENT LIST ID i",
        "INFO everything", "COMMAND DOCS", "LATENCY HISTOGRAM", "SLOWLOG GET i", "WAIT i i",
        "EVAL v i k v", "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 k v",
        "PERSIST k", "STATE.SET k v EXPIRES i", "STATE.APPLY 2 SET k v EXPIRES i IFREV i DELETE k",
        "TYPE k", "KEYS p", "SCAN i", "SCAN 0 MATCH p COUNT i", "MULTI", "EXEC", "EXEC", "DISCARD",
        "WATCH k k", "UNWATCH", "PING", "ECHO v", "HELLO 3", "HELLO 2", "RESET", "CLIENT LIST",
        "CLIENT SETNAME n", "INFO", "COMMAND DOCS get", "CONFIG GET p", "DBSIZE", "SELECT i",
        "STATE.GET k", "STATE.SET k v", "STATE.SET k v IFREV i", "STATE.SET k v IFVAL v",
        "STATE.APPLY 2 SET k v DELETE k", "STATE.APPLY 1 CHECK k i", "STATE.DELETE p",
        "STATE.DELETE p DRYRUN", "STATE.LIST p", "STATE.LIST p AFTER k LIMIT i KEYS",
        "STATE.LIST p COUNT", "STATE.WATCH p p SNAPSHOT", "STATE.WATCH p PREVIOUS",
        "STATE.WATCH p SNAPSHOT BY", "STATE.SET k v IFREV i DURABILITY memory", "STATE.LIST p LONG",
        "STATE.UNWATCH i", "STATE.STATUS", "STATE.RULES", "STATE.EXPLAIN k", "STATE.RELOAD",
        "STATE.CHECK", "STATE.CHECK p AFTER k LIMIT i", "TIME", "NOSUCH k v", "QUIT",
    ]

    static func pipeline(_ random: inout SplitMix) -> [UInt8] {
        var writer = RequestWriter()
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let template = templates[Int.random(in: 0..<templates.count, using: &random)]
            var words = template.split(separator: " ").map { argument(String($0), &random) }
            if random.chance(5) { words.append(argument("v", &random)) }
            if random.chance(5) { words.removeLast() }
            writer.append(words)
        }
        return writer.bytes
    }

    private static func argument(_ word: String, _ random: inout SplitMix) -> [UInt8] {
        switch word {
        case "k", "n":
            return random.chance(3)
                ? random.bytes(Int.random(in: 0...1_100, using: &random))
                : Array(keys[Int.random(in: 0..<keys.count, using: &random)].utf8)
        case "p": return Array(patterns[Int.random(in: 0..<patterns.count, using: &random)].utf8)
        case "i": return Array(String(Int.random(in: -1...40, using: &random)).utf8)
        case "v":
            let limit = random.chance(5) ? 5_000 : 40
            return random.bytes(Int.random(in: 0...limit, using: &random))
        default: return Array(word.utf8)
        }
    }

    /// Changes, takes away or adds some bytes.
    static func spoil(_ bytes: inout [UInt8], _ random: inout SplitMix) {
        for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
            case 1: bytes.removeSubrange(place..<min(bytes.count, place + 9))
            case 2: bytes.insert(contentsOf: random.bytes(3), at: place)
            default: bytes.removeSubrange(place...)
            }
        }
    }
}
