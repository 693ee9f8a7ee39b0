import Glibc
import StateTestSupport
import StateWire

/// Many clients with a key each that are killed at once, and clients that come back after a restart.
struct LifetimeCheck {
    private let count: Int
    private let roundCount: Int
    /// Milliseconds; 0: only printed.
    private let limit: Int
    private let directory: TemporaryDirectory

    init(_ options: Options) throws {
        count = try options.number("count", standard: 1_000)
        roundCount = try options.number("rounds", standard: 5)
        limit = try options.number("limit", standard: 200)
        directory = try options.makeDirectory()
    }

    func run() throws {
        ByteSocket.allow(2 * count + 100)
        try directory.write("{ limits: { graceSeconds: 3 } }", to: "grace.json5")
        let daemon = try Daemon("--config", directory.path(of: "grace.json5"), directory: directory)
        var times: [Double] = []
        for _ in 0..<roundCount { times.append(try kill(daemon)) }
        let each = times.map { $0.text(0) }.joined(separator: ", ")
        print(
            "lifetimes: \(count) clients killed at once, gone after \(each) ms, one commit each, in order"
        )
        guard limit == 0 || median(times) <= Double(limit) else {
            throw Failure("the median is more than \(limit) ms")
        }
        try comeBack(daemon, isKilled: true)
        try comeBack(daemon, isKilled: false)
        try daemon.stop()
    }

    /// - Returns: Milliseconds from the signal to the last commit.
    private func kill(_ daemon: Daemon) throws -> Double {
        let holder = try RunningCommand(
            builtProgram("StateTestProgram"),
            ["hold", daemon.socketPath, "\(count)"].map { Array($0.utf8) }
        )
        guard try holder.nextLine(within: .seconds(120)) == "ready" else {
            throw Failure("no holder")
        }
        let wire = try Wire(daemon.socketPath)
        try wire.ask("HELLO", "3")
        try wire.ask("STATE.WATCH", "hold/", "BY")
        let start = wallNanoseconds()
        holder.signal(SIGKILL)
        var keys: Set<String> = []
        var revision: Int64 = 0
        var last: Int64 = 0
        while keys.count < count {
            guard case .push(let parts) = try wire.next(), parts[0].textValue == "state.change"
            else { continue }
            last = wallNanoseconds()
            let changes = parts[3].elements ?? []
            guard changes.count == 1, let change = changes[0].elements, change[1] == .null,
                let key = change[0].textValue, keys.insert(key).inserted
            else { throw Failure("not a delete of one key: \(parts)") }
            guard let next = parts[2].integerValue, next > revision else {
                throw Failure("out of order")
            }
            guard parts[4].textValue?.contains("disconnect") == true else {
                throw Failure("by \(parts[4])")
            }
            revision = next
        }
        _ = holder.wait()
        guard try wire.ask("STATE.LIST", "hold/", "COUNT") == .integer(0) else {
            throw Failure("some are left")
        }
        return Double(last - start) / 1e6
    }

    /// Every other client comes back and claims its key in time; those of the others end.
    private func comeBack(_ daemon: Daemon, isKilled: Bool) throws {
        var claims: [String] = []
        let folder = isKilled ? "killed/" : "stopped/"
        do {
            let clients = try (0..<count).map { _ in try Wire(daemon.socketPath) }
            for (number, client) in clients.enumerated() {
                guard let claim = try client.ask("STATE.CLAIM").elements?[1].textValue else {
                    throw Failure("STATE.CLAIM has no word")
                }
                claims.append(claim)
                try client.ask("STATE.SET", folder + "\(number)", "v", "LIFETIME", "connection")
            }
            if isKilled { daemon.kill() } else { try daemon.stop() }
            withExtendedLifetime(clients) {}
        }
        try daemon.start()
        let back = try stride(from: 0, to: count, by: 2).map { number in
            let client = try Wire(daemon.socketPath)
            guard try client.ask("STATE.CLAIM", claims[number]).elements?[3] == .integer(1) else {
                throw Failure("the key of client \(number) was lost before it was claimed")
            }
            return client
        }
        let observer = try Wire(daemon.socketPath)
        let left = Int64(back.count)
        let isOver = try eventually(within: .seconds(60)) {
            try observer.ask("STATE.LIST", folder, "COUNT") == .integer(left)
        }
        // What was claimed stays beyond the time.
        usleep(1_000_000)
        for number in stride(from: 0, to: count, by: 2) {
            guard try observer.ask("EXISTS", folder + "\(number)") == .integer(1) else {
                throw Failure(
                    "the key of client \(number) was lost although it was claimed in time"
                )
            }
        }
        guard isOver, try observer.ask("STATE.LIST", folder, "COUNT") == .integer(left) else {
            throw Failure("keys that nobody claimed are left")
        }
        withExtendedLifetime(back) {}
        print(
            "lifetimes: \(isKilled ? "kill" : "stop") and start: \(left) of \(count) claimed in time, none lost"
        )
    }
}
