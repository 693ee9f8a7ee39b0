import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A daemon that answers a write and does not deliver its commit.
struct HeldAnswerTests {
    private static let requests = [
        "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*1\r\n$12\r\nSTATE.STATUS\r\n",
        "*4\r\n$11\r\nSTATE.WATCH\r\n$1\r\nk\r\n$8\r\nSNAPSHOT\r\n$2\r\nBY\r\n",
        "*3\r\n$9\r\nSTATE.SET\r\n$1\r\nk\r\n$1\r\nv\r\n",
    ]
    private static let answers = [
        "%1\r\n+proto\r\n:3\r\n%1\r\n$5\r\nepoch\r\n$16\r\n00000000000000ab\r\n",
        "%3\r\n$5\r\nwatch\r\n:1\r\n$8\r\nrevision\r\n:4\r\n"
            + "$5\r\nepoch\r\n$16\r\n00000000000000ab\r\n>3\r\n$12\r\nstate.synced\r\n:1\r\n:4\r\n",
        "%2\r\n$8\r\nrevision\r\n:5\r\n$10\r\ndurability\r\n$6\r\nsynced\r\n",
    ]

    @Test func `a write that is answered and never delivered ends in time`() throws {
        let steps = zip(Self.requests, Self.answers).flatMap {
            [TranscriptServer.Step.receive($0.utf8.count), .send($1)]
        }
        let server = try TranscriptServer(steps + [.waitForEnd])
        let keyspace = try RemoteKeyspace(socket: server.path, timeout: .seconds(60))
        let states = Observed(0)
        let watch = keyspace.watch { event in
            if case .state = event { states.update { $0 += 1 } }
        }
        watch.include([Pattern("k" as Key)])
        #expect(states.wait { $0 == 1 })
        let answers = Observed<[Result<Int64, StateError>]>([])
        keyspace.submit(
            [.set("k", [0x76])],
            durability: .synced,
            timeout: .milliseconds(50)
        ) { result in answers.update { $0.append(result) } }
        try #require(answers.wait { !$0.isEmpty })
        guard case .failure(let error) = answers.current[0] else {
            Issue.record("\(answers.current)")
            return
        }
        #expect(error.code == .outcomeUnknown)
        #expect(error.message.contains("committed revision 5, but did not deliver it"))
        #expect(error.message.contains("within 50ms (\(server.path))"))
        keyspace.close()
        #expect(answers.current.count == 1)
    }
}
