import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Synchronization
import Testing

/// A commit that computes without an end.
struct StuckCommitTests {
    /// A store whose commits take the processor until somebody ends that.
    private final class SpinningBacking: Backing {
        let spins = Atomic(false)
        let isPersistent = true

        func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
            LoadedStore(epoch: .random(), revision: 0)
        }

        func commit(_ batch: borrowing CommitBatch) throws {
            while spins.load(ordering: .relaxed) {}
        }

        func reopen(
            after revision: Int64,
            _ receive: (borrowing StoredChange) -> Void
        ) throws -> [String: String?] { [:] }

        func close() {}
    }

    @Test func `a commit thread that is stuck gets no sign of life, and one that goes on does`()
        throws
    {
        let backing = SpinningBacking()
        let signs = Observed(0)
        let server = try ServedKeyspace(backing) { options in
            options.watchdog = (100, { signs.update { $0 += 1 } })
        }
        #expect(signs.wait { $0 >= 2 })
        let peer = try server.connect()
        backing.spins.store(true, ordering: .relaxed)
        try peer.send("SET k 1")
        #expect(server.log.wait { $0.contains { $0.contains("has computed for") } })
        // Reads are answered all the same, but the manager starts the daemon anew.
        #expect(try server.connect().ask("GET other") == .null)
        #expect(server.log.wait { $0.count { $0.contains("no sign of life") } > 3 })
        let count = signs.current
        backing.spins.store(false, ordering: .relaxed)
        #expect(try peer.next() == .simple("OK"))
        #expect(signs.wait { $0 > count + 2 })
        server.stop()
    }
}
