import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Random commands that set and change times, beside a model; the clock is the test's.
struct ExpiryModelTests {
    /// `STATED_EXPIRY_HISTORIES` histories, however long they take.
    @Test func `every reply, and what a watch is sent, is what the model says`() throws {
        let count = Extent.named("STATED_EXPIRY_HISTORIES", short: 200)
        var steps = 0
        var expired = 0
        for number in 0..<count {
            let seed = Seed.base &+ UInt64(number)
            let history = try ExpiryHistory(seed: seed)
            guard let fault = try history.run() else {
                steps += history.stepCount
                expired += history.expiredCount
                continue
            }
            Issue.record("STATED_TEST_SEED=\(seed): \(fault)")
            return
        }
        print("model: \(count) histories, \(steps) steps, \(expired) keys expired")
        #expect(expired > count)
    }
}

/// One history on a server of its own.
private final class ExpiryHistory {
    private struct Entry: Equatable {
        var value: String
        /// On the clock of deadlines; nil: never.
        var deadline: Int64?
    }

    private let server: ServedKeyspace
    private let peer: Peer
    private let watcher: Peer
    private let clock = Observed<Int64>(1_000_000)
    private var now: Int64 = 1_000_000
    /// What the wall clock has more than the clock of deadlines; both are the test's.
    private static let wallOffset: Int64 = 1_700_000_000_000
    private var model: [String: Entry] = [:]
    private var random: SplitMix
    private(set) var stepCount = 0
    private(set) var expiredCount = 0
    private var trace: [String] = []

    init(seed: UInt64) throws {
        random = SplitMix(seed: seed)
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        peer = try server.connect()
        // The server, which sets its own clocks, is there once it answers.
        _ = try peer.ask("PING")
        server.keyspace.withCore { [clock] in
            $0.entries.clock = { clock.current }
            $0.entries.wallClock = { clock.current + ExpiryHistory.wallOffset }
        }
        watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH /")
    }

    /// - Returns: What is not as the model says; nil if all is.
    func run() throws -> String? {
        for _ in 0..<Int.random(in: 20...80, using: &random) {
            stepCount += 1
            if let fault = try step() {
                return fault + "; after: " + trace.joined(separator: " | ")
            }
        }
        // What has ended is deleted, and the watch was sent all of it.
        try deleteDue()
        advance(by: 10_000_000)
        try deleteDue()
        var seen: [String: String] = [:]
        try watcher.send("ECHO end")
        while true {
            let reply = try watcher.next()
            if reply.textValue == "end" { break }
            guard case .push(let parts) = reply, parts[0].textValue == "state.change" else {
                continue
            }
            for change in parts[3].elements ?? [] {
                guard let words = change.elements, let key = words[0].textValue else { continue }
                seen[key] = words[1].textValue
            }
        }
        return seen == model.mapValues(\.value) ? nil : "the watch has \(seen), the model \(model)"
    }

    /// The loop sleeps by the machine's clock: a command wakes it.
    private func deleteDue() throws {
        _ = try peer.ask("PING")
        try server.waitUntil("the deletes") { server.durable().count == model.count }
    }

    private func advance(by milliseconds: Int64) {
        now += milliseconds
        clock.update { $0 += milliseconds }
        let count = model.count
        model = model.filter { $0.value.deadline.map { $0 > now } ?? true }
        expiredCount += count - model.count
    }

    private func anyKey() -> String { "k\(Int.random(in: 0..<5, using: &random))" }

    private func entry(_ value: String, _ milliseconds: Int64?) -> Entry {
        Entry(value: value, deadline: milliseconds.map { now + $0 })
    }

    /// Sends a command, and compares its reply.
    private func expect(_ command: String, _ reply: String) throws -> String? {
        trace.append(command)
        let found = try peer.ask(command).shown
        return found == reply ? nil : "\(command) is \(found), not \(reply)"
    }

    private func step() throws -> String? {
        let key = anyKey()
        let old = model[key]
        let value = "v\(stepCount)"
        let time = Int64.random(in: 1...5_000, using: &random) * 1_000
        let shownValue = old.map { "\"\($0.value)\"" } ?? "(nil)"
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1:
            model[key] = entry(value, time)
            return try expect("SET \(key) \(value) PX \(time)", "+OK")
        case 2:
            model[key] = entry(value, nil)
            return try expect("SET \(key) \(value)", "+OK")
        case 3:
            model[key] = Entry(value: value, deadline: old?.deadline)
            return try expect("SET \(key) \(value) KEEPTTL", "+OK")
        case 4, 5, 6: return try changeTime(of: key, old, time)
        case 7:
            let isChanged = old?.deadline != nil
            if isChanged, let old { model[key] = entry(old.value, nil) }
            return try expect("PERSIST \(key)", isChanged ? "1" : "0")
        case 8:
            if let old { model[key] = entry(old.value, time) }
            return try expect("GETEX \(key) PX \(time)", shownValue)
        case 9:
            if let old { model[key] = entry(old.value, nil) }
            return try expect("GETEX \(key) PERSIST", shownValue)
        case 10:
            model[key] = nil
            return try expect("DEL \(key)", old == nil ? "0" : "1")
        case 11:
            let sum = (old?.value ?? "") + "x"
            model[key] = Entry(value: sum, deadline: old?.deadline)
            return try expect("APPEND \(key) x", "\(sum.utf8.count)")
        case 12:
            let isNew = Bool.random(using: &random)
            let isSet = isNew == (old == nil)
            if isSet { model[key] = entry(value, time) }
            return try expect(
                "SET \(key) \(value) \(isNew ? "NX" : "XX") PX \(time)",
                isSet ? "+OK" : "(nil)"
            )
        case 13: return try moveName(key, old)
        case 14:
            if let old { model[key] = entry(old.value, time) }
            let at = now + time + ExpiryHistory.wallOffset
            return try expect("PEXPIREAT \(key) \(at)", old == nil ? "0" : "1")
        case 15: return try transact(key, value, time)
        case 16: return try expect("GET \(key)", shownValue)
        case 17:
            var left: Int64 = -2
            if let old { left = old.deadline.map { $0 - now } ?? -1 }
            return try expect("PTTL \(key)", "\(left)")
        case 18:
            return try expect("EXISTS k0 k1 k2 k3 k4", "\(model.count)")
        default:
            // To the last millisecond before a deadline, to the deadline, or to anywhere.
            let deadlines = model.values.compactMap(\.deadline).sorted()
            let first: Int64 = deadlines.first.map { $0 - now } ?? 1
            let goals: [Int64] = [first - 1, first, time, time / 50]
            let goal: Int64 = goals.randomElement(using: &random) ?? 1
            trace.append("+\(goal) ms")
            advance(by: max(0, goal))
            return nil
        }
    }

    private func changeTime(of key: String, _ old: Entry?, _ time: Int64) throws -> String? {
        let condition = ["", " NX", " XX", " GT", " LT"].randomElement(using: &random) ?? ""
        var isAllowed = old != nil
        switch condition {
        case " NX": isAllowed = isAllowed && old?.deadline == nil
        case " XX": isAllowed = isAllowed && old?.deadline != nil
        case " GT", " LT":
            // Without a deadline it is the latest of all.
            let (limit, new) = (old?.deadline ?? .max, now + time)
            isAllowed = isAllowed && (condition == " GT" ? new > limit : new < limit)
        default: break
        }
        if isAllowed, let old { model[key] = entry(old.value, time) }
        return try expect("PEXPIRE \(key) \(time)\(condition)", isAllowed ? "1" : "0")
    }

    private func moveName(_ key: String, _ old: Entry?) throws -> String? {
        let other = anyKey()
        guard other != key else { return nil }
        if Bool.random(using: &random) {
            guard let old else { return try expect("RENAME \(key) \(other)", "-ERR no such key") }
            model[key] = nil
            model[other] = old
            return try expect("RENAME \(key) \(other)", "+OK")
        }
        let replaces = Bool.random(using: &random)
        let isCopied = old != nil && (replaces || model[other] == nil)
        if isCopied { model[other] = old }
        return try expect("COPY \(key) \(other)\(replaces ? " REPLACE" : "")", isCopied ? "1" : "0")
    }

    private func transact(_ key: String, _ value: String, _ time: Int64) throws -> String? {
        let isDiscarded = random.chance(25)
        for (command, reply) in [
            ("MULTI", "+OK"), ("SET \(key) \(value)", "+QUEUED"),
            ("PEXPIRE \(key) \(time)", "+QUEUED"),
            ("PTTL \(key)", "+QUEUED"),
        ] {
            if let fault = try expect(command, reply) { return fault }
        }
        if isDiscarded { return try expect("DISCARD", "+OK") }
        model[key] = entry(value, time)
        return try expect("EXEC", "[+OK, 1, \(time)]")
    }
}
