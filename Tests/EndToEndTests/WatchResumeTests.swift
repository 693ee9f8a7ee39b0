import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Watches that are resumed, at the size of real work and on stores that are not what they were.
///
/// `STATED_RESUME_CHANGES=2000000 STATED_LATEST_WRITES=10000000` is the long form.
struct WatchResumeTests {
    private static let changes = Extent.named("STATED_RESUME_CHANGES", short: 50_000)
    private static let latestWrites = Extent.named("STATED_LATEST_WRITES", short: 100_000)

    /// What keeps so many changes; by default a million are kept.
    private static let options =
        changes > 900_000 ? ["--history-changes", "\(2 * changes)"] : []

    private func load(_ daemon: Daemon, _ count: Int, valueByteCount: Int = 64) throws {
        _ = try statebench(
            "load",
            "--socket",
            daemon.socketPath,
            "--clients",
            "50",
            "--pipeline",
            "16",
            "--keys",
            "1000",
            "--value-bytes",
            "\(valueByteCount)",
            "--requests",
            "\(count)"
        )
    }

    @Test func `a watcher that stalls while much is written gets every commit, in bounded memory`()
        throws
    {
        let daemon = try Daemon(Self.options)
        let client = try daemon.connect(timeout: .seconds(60))
        _ = try client.watch([.everything], snapshot: true)
        var state = WatchedState()
        // Past the 8 MiB that wait for it at most.
        try load(daemon, Self.changes, valueByteCount: Self.changes < 200_000 ? 256 : 64)
        let report = try #require(try daemon.connect().watches().first)
        #expect(report.state == "blocked")
        #expect(report.lag > 0 && report.waiting < 9 << 20)
        let last = try daemon.connect().set(Array("live".utf8), for: "live").revision
        while !state.isSynced || state.revision < last {
            state.apply(try #require(try client.nextEvent(timeout: .seconds(60))))
        }
        #expect(state.gapCount == 0)
        #expect(state.commitCount == Self.changes + 1)
        #expect(try state.entries == WatchedState.listed(by: daemon.connect()))
        #expect(try daemon.peakMemory() < 64)
    }

    @Test
    func `a watcher that lags behind compaction gets a gap, all values, and is live`() throws {
        let daemon = try Daemon(["--history-changes", "\(Self.changes / 20)"])
        let client = try daemon.connect(timeout: .seconds(60))
        _ = try client.watch([.everything], snapshot: true)
        try load(daemon, Self.changes, valueByteCount: Self.changes < 200_000 ? 256 : 64)
        let loaded = try daemon.connect().status().first { $0.name == "revision" }?.number
        _ = try daemon.connect().compact(to: loaded, shrinks: false)
        let last = try daemon.connect().set(Array("live".utf8), for: "live").revision
        var state = WatchedState()
        while !state.isSynced || state.revision < last {
            state.apply(try #require(try client.nextEvent(timeout: .seconds(60))))
        }
        #expect(state.gapCount == 1)
        #expect(state.commitCount < Self.changes)
        #expect(try state.entries == WatchedState.listed(by: daemon.connect()))
        try expectLive(client, daemon)
        #expect(try daemon.peakMemory() < 64)
    }

    @Test func `a watcher that comes back late gets every commit, and is synced beside writers`()
        throws
    {
        let daemon = try Daemon(Self.options)
        let epoch = try daemon.connect().watch([.everything]).epoch
        try load(daemon, Self.changes)
        let writer = try RunningCommand(
            builtProgram("statebench"),
            ["load", "--socket", daemon.socketPath, "--clients", "8", "--requests", "20000"]
                .map { Array($0.utf8) }
        )
        let client = try daemon.connect(timeout: .seconds(60))
        _ = try client.watch([.everything], from: 0, epoch: epoch)
        var revision: Int64 = 0
        while revision < Self.changes + 20_000 {
            let event = try #require(try client.nextEvent(timeout: .seconds(60)))
            guard case .commit(_, let next, let changes) = event else { continue }
            try #require(next == revision + 1 && changes.count == 1)
            revision = next
        }
        #expect(try writer.finish().exitCode == 0)
        #expect(try daemon.connect().watches().map(\.state) == ["synced"])
        #expect(try daemon.peakMemory() < 64)
    }

    @Test func `of 1,000 keys at most 1,000 latest values wait, and the last of each arrives`()
        throws
    {
        let daemon = try Daemon()
        let client = try daemon.connect(timeout: .seconds(60))
        _ = try client.watch([.everything], latest: true)
        for _ in 0..<10 {
            try load(daemon, Self.latestWrites / 10)
            let report = try #require(try daemon.connect().watches().first)
            #expect(report.values <= 1_000)
            #expect(report.pending <= 1_000)
        }
        let last = try #require(
            try daemon.connect().status().first { $0.name == "revision" }?.number
        )
        var values: [[UInt8]: (value: [UInt8]?, revision: Int64)] = [:]
        var synced: Int64 = 0
        while synced < last {
            switch try #require(try client.nextEvent(timeout: .seconds(60))) {
            case .commit(_, let revision, let changes):
                for change in changes {
                    #expect(values[change.key]?.revision ?? 0 < revision)
                    values[change.key] = (change.value, revision)
                }
            case .synced(_, let revision): synced = revision
            case let event: Issue.record("\(event)")
            }
        }
        let listed = try WatchedState.listed(by: daemon.connect())
        #expect(listed.count == values.count)
        #expect(listed.allSatisfy { $0.value.revision == values[$0.key]?.revision })
        #expect(listed.allSatisfy { $0.value.value == values[$0.key]?.value })
        #expect(try daemon.peakMemory() < 64)
    }

    enum Change: CaseIterable { case copied, restored, wiped }

    @Test(arguments: Change.allCases)
    func `a watch resumed on a store that is another gets a gap under another epoch`(
        change: Change
    ) throws {
        let daemon = try Daemon()
        let watch = try daemon.connect().watch([.everything])
        for number in 0..<10 { _ = try daemon.connect().set([UInt8(number)], for: "k") }
        try daemon.stop()
        let (data, copy) = (daemon.dataPath, daemon.directory.path(of: "copy"))
        try run("cp -a '\(data)' '\(copy)'")
        switch change {
        case .copied: try run("rm -r '\(data)' && mv '\(copy)' '\(data)'")
        case .restored:
            try daemon.start()
            for number in 0..<10 { _ = try daemon.connect().set([UInt8(number)], for: "later") }
            try daemon.stop()
            try run("rm -r '\(data)' && mv '\(copy)' '\(data)'")
        case .wiped: try run("rm -r '\(data)'")
        }
        try daemon.start()
        _ = try daemon.connect().set([1], for: "new")
        let client = try daemon.connect()
        let resumed = try client.watch([.everything], from: 10, epoch: watch.epoch)
        #expect(resumed.epoch != watch.epoch)
        try expectGapAndState(client, daemon)
    }

    @Test(arguments: [[], ["--memory"]])
    func `a watch resumed from the future gets a gap`(options: [String]) throws {
        let daemon = try Daemon(options)
        _ = try daemon.connect().set([1], for: "k")
        let client = try daemon.connect()
        _ = try client.watch([.everything], from: 2)
        try expectGapAndState(client, daemon)
    }

    @Test func `a watch is resumed across a crash, and across a clean restart`() throws {
        let daemon = try Daemon()
        let epoch = try daemon.connect().watch([.everything]).epoch
        for number in 1...10 { _ = try daemon.connect().set([UInt8(number)], for: "k") }
        for round in 0..<2 {
            if round == 0 { daemon.kill() } else { try daemon.stop() }
            try daemon.start()
            let client = try daemon.connect()
            _ = try client.watch([.everything], from: 4, epoch: epoch)
            for revision in Int64(5)...10 {
                guard
                    case .commit(_, revision, let changes)? = try client.nextEvent(
                        timeout: .seconds(20)
                    )
                else { throw SystemFailure("commit \(revision) does not come") }
                #expect(changes.map(\.value) == [[UInt8(revision)]])
            }
        }
    }

    @Test func `statectl watches tells whose each watch is and how far`() throws {
        let daemon = try Daemon()
        let client = try daemon.connect()
        _ = try client.watch(["audio/", "a*"], previous: true)
        _ = try client.watch(["b"], latest: true)
        _ = try daemon.connect().set([1], for: "k")
        let table = try Statectl.run(daemon, "watches")
        #expect(table.lines.count == 3)
        #expect(table.lines[0].hasPrefix("CLIENT  WATCH  PID"))
        #expect(table.lines[1].contains("synced") && table.lines[1].hasSuffix("audio/ a* PREVIOUS"))
        let lines = try Statectl.run(daemon, "watches", "--json").lines
        #expect(lines.count == 2)
        #expect(
            lines[1].contains(
                #""patterns":"b","options":"LATEST","state":"synced","revision":1,"lag":0"#
            )
        )
        let status = try Statectl.run(daemon, "status").text
        #expect(status.contains("watches_synced:") && status.contains("watches_blocked:"))
    }

    private func expectGapAndState(_ client: Client, _ daemon: Daemon) throws {
        guard case .gap? = try client.nextEvent(timeout: .seconds(20)) else {
            throw SystemFailure("no gap")
        }
        var state = WatchedState()
        while !state.isSynced {
            state.apply(try #require(try client.nextEvent(timeout: .seconds(20))))
        }
        #expect(try state.entries == WatchedState.listed(by: daemon.connect()))
        try expectLive(client, daemon)
    }

    private func expectLive(_ client: Client, _ daemon: Daemon) throws {
        let next = try daemon.connect().set([9], for: "live").revision
        guard case .commit(_, next, _)? = try client.nextEvent(timeout: .seconds(60)) else {
            throw SystemFailure("not live")
        }
    }

    private func run(_ script: String) throws {
        let result = try runCommand("/bin/sh", ["-c", script])
        guard result.exitCode == 0 else { throw SystemFailure("\(script): \(result)") }
    }
}

extension Daemon {
    /// The most memory that it has had at once, in MiB.
    func peakMemory() throws -> Double {
        let status = String(decoding: try readFile("/proc/\(pid)/status"), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let number = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
        return try #require(number.flatMap { Double($0) }) / 1_024
    }
}
