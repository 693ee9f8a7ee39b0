import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// What watchers are told while others write, at the size of real work.
struct WatchTests {
    private let daemon: Daemon

    init() throws { daemon = try Daemon() }

    @Test func `a watcher with a snapshot holds the final state of 8 writers`() throws {
        let writes = getenv("STATED_WATCH_WRITES").flatMap { Int(String(cString: $0)) } ?? 20_000
        let writers = try startWriters(writes: writes)
        let client = try daemon.connect(timeout: .seconds(120))
        let wanted = Deadline(after: .seconds(60))
        while try revision(client) < 1_000, !wanted.hasPassed {}
        _ = try client.watch([.everything], snapshot: true)
        var state = WatchedState()
        // On a busy machine it may fall behind and be told of a gap; then `done` may stand in the pieces after it.
        while !state.isSynced || state.entries[Array("done".utf8)] == nil {
            let event = try #require(try client.nextEvent(timeout: .seconds(60)))
            state.apply(event)
            guard case .commit(_, let revision, let changes) = event else { continue }
            expectWholeGroups(changes, revision)
        }
        #expect(try writers.finish().exitCode == 0)
        #expect(state.commitCount > 1_000, "too few commits to test, \(state.gapCount) gaps")
        #expect(try state.entries == WatchedState.listed(by: daemon.connect()))
        #expect(try state.revision == revision(client))
    }

    @Test func `an idle daemon with 100 watchers uses no processor time`() throws {
        let watchers = try (0..<100).map { _ in try daemon.connect() }
        for watcher in watchers { _ = try watcher.watch([.everything], snapshot: true) }
        for watcher in watchers {
            guard case .synced = try watcher.nextEvent(timeout: .seconds(20)) else {
                Issue.record("an empty state begins with something else than synced")
                return
            }
        }
        let before = try daemon.processorTicks()
        #expect(try watchers[0].nextEvent(timeout: .seconds(10)) == nil)
        #expect(try daemon.processorTicks() - before <= 1)
    }

    /// 8 writers, and after them the key `done`.
    private func startWriters(writes: Int) throws -> RunningCommand {
        let script = """
            "$1" writers --socket "$3" --log "$4" --clients 8 --writes \(writes) &&
                "$2" --socket "$3" set done 1
            """
        let arguments = [
            "-c", script, "sh", builtProgram("statebench"), builtProgram("statectl"),
            daemon.socketPath, daemon.directory.path(of: "writers.log"),
        ]
        return try RunningCommand("/bin/sh", arguments.map { Array($0.utf8) })
    }

    private func revision(_ client: Client) throws -> Int64 {
        try #require(try client.status().first { $0.name == "revision" }?.number)
    }

    /// The keys of a group, `crash/3/mset/2/0` to `…/4`, come all five and with one stamp, `#` behind the key.
    private func expectWholeGroups(_ changes: [Client.Change], _ revision: Int64) {
        var stamps: [String: [Substring]] = [:]
        for change in changes {
            let key = String(decoding: change.key, as: UTF8.self).split(separator: "/")
            guard key.count == 5, let value = change.value else { continue }
            let stamp = String(decoding: value, as: UTF8.self).split(separator: "#")[1]
            stamps[key.dropLast().joined(separator: "/"), default: []].append(stamp)
        }
        for (group, stamps) in stamps {
            #expect(stamps.count == 5, "commit \(revision) has a part of \(group)")
            #expect(Set(stamps).count == 1, "commit \(revision) mixes stamps of \(group)")
        }
    }
}
