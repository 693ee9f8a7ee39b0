import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// A program of ten lines in any language: it asks for changes, and goes on where it was.
struct ChangesTests {
    @Test(arguments: [true, false])
    func `who goes on with STATE.CHANGES sees every change of a prefix across restarts`(
        isKilled: Bool
    ) throws {
        let daemon = try Daemon()
        let (path, count) = (daemon.socketPath, 300)
        let seen = Observed<[String]>([])
        let follower = WorkerThread(name: "follower")
        follower.start {
            do {
                try Self.follow(path, until: "\(count)", seen)
            } catch {
                Issue.record("\(error)")
            }
        }
        defer { follower.join() }
        for number in 1...count {
            let client = try daemon.connect()
            try client.set(Array("\(number)".utf8), for: "audio/k")
            try client.set(Array("\(number)".utf8), for: "other")
            guard number.isMultiple(of: 60) else { continue }
            // Not only where it waits: it has to have seen some of it.
            try #require(seen.wait { $0.count >= number - 30 })
            if isKilled {
                daemon.kill()
                try daemon.start()
            } else {
                try daemon.restart()
            }
        }
        #expect(seen.wait { $0.count >= count })
        #expect(seen.current == (1...count).map(String.init))
    }

    /// Asks until it has seen a value, for 60 seconds at most.
    private static func follow(
        _ path: String,
        until last: String,
        _ seen: Observed<[String]>
    ) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        var next: Int64 = 0
        var epoch: String?
        while seen.current.last != last {
            guard ContinuousClock.now < deadline else { throw SystemFailure("no \(last) in time") }
            do {
                let peer = try Peer(path)
                let known = try epoch ?? peer.ask("STATE.STATUS")["epoch"]?.textValue
                epoch = known
                while seen.current.last != last {
                    let line = "STATE.CHANGES SINCE \(next) EPOCH \(known ?? "") BLOCK 5000 audio/"
                    let page = try peer.ask(line).elements ?? []
                    guard page.count == 4, page[0].textValue == "ok" else {
                        Issue.record("\(page.map(\.shown))")
                        return
                    }
                    next = page[1].integerValue ?? next
                    for commit in page[2].elements ?? [] {
                        let change = commit.elements?[1].elements?[0].elements
                        seen.update { $0.append(change?[1].textValue ?? "") }
                    }
                }
            } catch {
                // The daemon is on its way.
                sched_yield()
            }
        }
    }
}
