import StateTestSupport
import StateWire
import Testing

/// A link of which the test decides everything: what comes, in which order, and what does not.
final class FakeLink {
    let peer: Peer
    private(set) var revision: Int64 = 10
    /// Batches that came before the reply to a commit.
    private var batches: [[Reply]] = []

    /// What the daemon wants to change.
    struct Batch {
        let number: Int64
        let position: Int64
        let writers: String
        let writes: [[String]]
    }

    /// The cluster has `app/a` in version 1 and `app/b` in version 2, at revision 10, and is current.
    init(_ server: ServedKeyspace, isCurrent: Bool = true, isReady: Bool = true) throws {
        peer = try server.connect(3)
        var steps = ["BEGIN", "RESYNC h1 first", "ROWS app/a 1 x app/b 2 y", "SYNCED 10 9:s"]
        if isCurrent { steps.append("BEAT 10 0 0") }
        if isReady { steps.append("READY 128 100000") }
        for step in steps { try take(step) }
    }

    /// Takes the place of another that has ended.
    init(after other: FakeLink, _ server: ServedKeyspace) throws {
        peer = try server.connect(3)
        revision = other.revision
        try take("BEGIN")
    }

    /// What the daemon has sent and nobody has taken.
    func arrived() throws -> Int { try batches.count + peer.arrived().count }

    func take(_ step: String) throws {
        let reply = try peer.ask("STATE.MIRROR \(step)")
        #expect(reply.errorText == nil, "\(step): \(reply.shown)")
    }

    func batch() throws -> Batch {
        let push = try batches.isEmpty ? peer.next().elements ?? [] : batches.removeFirst()
        try #require(push.count == 5 && push[0].textValue == "state.batch")
        return Batch(
            number: push[1].integerValue ?? 0,
            position: push[2].integerValue ?? 0,
            writers: push[3].textValue ?? "",
            writes: (push[4].elements ?? []).map { $0.elements?.compactMap(\.textValue) ?? [] }
        )
    }

    /// A commit of the cluster; signed if a batch is in it.
    func commit(_ changes: String, of batch: Batch? = nil) throws {
        let words = Peer.words("STATE.MIRROR COMMIT \(revision) \(revision + 1) 9:s")
        let signature = batch.map { ["BY", "n1", "\($0.number)\u{1E}\($0.writers)"] } ?? []
        try peer.send([words + signature.map { Array($0.utf8) } + Peer.words(changes)])
        while true {
            let reply = try peer.next()
            guard case .push(let batch) = reply else {
                #expect(reply == .simple("OK"), "\(changes): \(reply.shown)")
                break
            }
            batches.append(batch)
        }
        revision += 1
    }
}
