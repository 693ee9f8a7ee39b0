import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Ordered: a state that is told while the daemon feeds the main watch from the history, where that is behind it.
struct WatchOrderTests {
    private static let epoch = "$5\r\nepoch\r\n$16\r\n00000000000000ab\r\n"

    private static func receive(_ commands: [String]...) -> TranscriptServer.Step {
        var request = RequestWriter()
        for command in commands { request.append(command.map { Array($0.utf8) }) }
        return .receive(request.bytes.count)
    }

    /// The reply to STATE.WATCH.
    private static func begun(_ number: Int, _ revision: Int) -> String {
        "%3\r\n$5\r\nwatch\r\n:\(number)\r\n$8\r\nrevision\r\n:\(revision)\r\n\(epoch)"
    }

    private static func mark(_ kind: String, _ number: Int, _ revision: Int) -> String {
        ">3\r\n+state.\(kind)\r\n:\(number)\r\n:\(revision)\r\n"
    }

    /// `a=1`, `b=2`: a commit, or with their own revisions a piece.
    private static func change(
        _ number: Int,
        _ revision: Int,
        _ rows: [(String, String)],
        at own: Int? = nil
    ) -> String {
        let rows = rows.map { key, value in
            "*\(own == nil ? 2 : 3)\r\n+\(key)\r\n+\(value)\r\n" + (own.map { ":\($0)\r\n" } ?? "")
        }
        return ">4\r\n+state.change\r\n:\(number)\r\n:\(revision)\r\n*\(rows.count)\r\n"
            + rows.joined()
    }

    private static let greeting = [
        receive(["HELLO", "3"], ["STATE.STATUS"]),
        .send("%1\r\n+proto\r\n:3\r\n%1\r\n" + epoch),
        receive(["STATE.WATCH", "a", "SNAPSHOT", "BY"]),
        .send(begun(1, 10) + change(1, 0, [("a", "0")], at: 9) + mark("synced", 1, 10)),
        receive(
            ["STATE.WATCH", "a", "b", "BY"],
            ["STATE.UNWATCH", "1"],
            ["STATE.WATCH", "b", "SNAPSHOT", "BY"]
        ),
    ]

    /// Follows `a`, then `b` too, until a commit tells that `b` is `end`.
    private func follow(_ steps: [TranscriptServer.Step]) throws -> [String] {
        let server = try TranscriptServer(Self.greeting + steps + [.waitForEnd])
        let keyspace = try RemoteKeyspace(socket: server.path)
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include(["a"])
        #expect(recorder.waits { $0.revision != nil })
        watch.include(["b"])
        #expect(recorder.waits { $0.values["b"] == "end" })
        keyspace.close()
        return recorder.shown.filter { $0 != "away" }
    }

    @Test func `of a key whose state was told, no older commit is`() throws {
        let shown = try follow([
            .send(
                Self.begun(2, 10) + "+OK\r\n" + Self.begun(3, 20)
                    + Self.change(3, 0, [("b", "new")], at: 18) + Self.mark("synced", 3, 20)
                    + Self.change(2, 15, [("a", "1"), ("b", "old")])
                    + Self.change(2, 18, [("b", "new")])
                    + Self.change(2, 21, [("a", "2"), ("b", "end")])
            )
        ])
        #expect(
            shown == [
                "state 10 of a: a=0", "state 20 of b: b=new", "commit 15 a=1",
                "commit 21 a=2 b=end",
            ]
        )
    }

    @Test func `where the state made up for a gap, no older commit is told at all`() throws {
        let shown = try follow([
            .send(
                Self.begun(2, 10) + Self.mark("gap", 1, 20) + "+OK\r\n" + Self.begun(3, 20)
                    + Self.mark("synced", 3, 20)
            ),
            Self.receive(["STATE.UNWATCH", "3"], ["STATE.WATCH", "a", "b", "SNAPSHOT", "BY"]),
            .send(
                "+OK\r\n" + Self.begun(4, 30) + Self.change(4, 0, [("a", "5")], at: 25)
                    + Self.mark("synced", 4, 30) + Self.change(2, 15, [("a", "1")])
                    + Self.mark("progress", 2, 16) + Self.change(2, 25, [("a", "5")])
                    + Self.change(2, 31, [("b", "end")])
            ),
        ])
        #expect(
            shown == [
                "state 10 of a: a=0", "state 20 of b: ", "state 30 of a b: a=5", "commit 31 b=end",
            ]
        )
    }
}
