import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// A reload that moves keys to memory over storage that fails.
struct ReloadMoveTests {
    private static let unknown = StateError(.readOnly, "outcome unknown: the sync failed")
    private static let full = StateError(.noSpace, "the disk is full")
    private let backing = HeldBacking()
    private let server: ServedKeyspace
    /// What was said of reloads.
    private let ended = Observed<[String]>([])

    init() throws {
        let ended = ended
        let source = ConfigurationSource(
            read: { () throws(StateError) in
                { (core, _) throws(StateError) in
                    let cause = core.retainCause(.thisProcess)
                    defer { core.release(cause) }
                    var report = ReloadReport(changed: [], needsRestart: [])
                    let rules = memoryRules("cache/")
                    report.movedKeyCount = try core.exchange(rules: rules, cause: cause, at: 1_000)
                    return report
                }
            },
            undo: { core, _ in core.restore(rules: nil) },
            onMoved: { count in ended.update { $0.append("moved \(count)") } },
            onEnd: { result in
                let text =
                    switch result {
                    case .success(let report): "from \(report.revision)"
                    case .failure(let error): error.message
                    }
                ended.update { $0.append(text) }
            }
        )
        server = try ServedKeyspace(backing) { _ in
        } preparing: {
            $0.reloads(from: source)
        }
    }

    /// Has `cache/a` stored and a reload that moves it on its way to storage.
    private func reload() throws -> Peer {
        let peer = try server.connect()
        backing.release()
        #expect(try peer.ask("SET cache/a one") == .simple("OK"))
        try peer.send("STATE.RELOAD")
        #expect(backing.held()?.map { $0.value == nil } == [true])
        return peer
    }

    /// The keys of the next commit that has something for storage; what is in memory alone goes through.
    private func heldKeys() -> [String]? {
        while let rows = backing.held() {
            if !rows.isEmpty { return rows.map { String(decoding: $0.key, as: UTF8.self) } }
            backing.release()
        }
        return nil
    }

    private func backing(of key: String) throws -> String {
        let isVolatile = server.keyspace.withCore { core in
            var receipt = core.makeReceipt()
            return Array(key.utf8).withUnsafeBytes { core.read($0, &receipt)?.isVolatile }
        }
        return isVolatile.map { $0 ? "memory" : "stored" } ?? "absent"
    }

    @Test func `a reload whose sync fails has happened where storage has it`() throws {
        let peer = try reload()
        let other = try server.connect()
        backing.holdReopening()
        backing.fail(Self.unknown, isKept: true)
        #expect(try peer.next().shown == "-READONLY outcome unknown: the sync failed")
        // Another waits until it is known what is in force.
        try peer.send("STATE.RELOAD")
        #expect(try other.ask("GET cache/a") == .bulk(Array("one".utf8)))
        #expect(try other.ask("SET cache/a x").shown.hasPrefix("-READONLY no writes until"))
        #expect(ended.current == [])
        backing.openAgain()
        #expect(ended.wait { $0 == ["moved 1", "from 2", "from 3"] }, "\(ended.current)")
        #expect(try peer.next()["revision"] == .integer(3))
        #expect(try other.ask("GET cache/a") == .bulk(Array("one".utf8)))
        #expect(try backing(of: "cache/a") == "memory")
        #expect(backing.kept.last?.value == nil)
    }

    @Test func `a reload whose sync fails is undone where storage does not have it`() throws {
        let peer = try reload()
        let other = try server.connect()
        #expect(try other.ask("SET cache/new hello") == .simple("OK"))
        backing.holdReopening()
        backing.fail(Self.unknown)
        #expect(try peer.next().shown == "-READONLY outcome unknown: the sync failed")
        #expect(ended.current == [])
        backing.openAgain()
        #expect(heldKeys() == ["cache/new"])
        #expect(ended.current == ["outcome unknown: the sync failed"])
        #expect(try backing(of: "cache/a") == "stored")
        backing.release()
        #expect(ended.wait { $0.last == "moved 1" }, "\(ended.current)")
        #expect(try backing(of: "cache/new") == "stored")
        #expect(backing.kept.last?.value == Array("hello".utf8))
    }

    @Test func `what was written under a reload that a full disk refuses moves when there is room`()
        throws
    {
        let peer = try reload()
        let other = try server.connect()
        #expect(try other.ask("SET cache/new hello") == .simple("OK"))
        backing.fail(Self.full)
        #expect(try peer.next().shown == "-NOSPACE the disk is full")
        #expect(heldKeys() == ["cache/new"])
        #expect(ended.current == ["the disk is full"])
        backing.fail(Self.full)
        #expect(server.log.wait { $0.contains { $0.contains("stay there until storage") } })
        #expect(try other.ask("GET cache/new") == .bulk(Array("hello".utf8)))
        #expect(try backing(of: "cache/new") == "memory" && ended.current.count == 1)
        // Tried again by itself.
        #expect(heldKeys() == ["cache/new"])
        backing.release()
        #expect(ended.wait { $0 == ["the disk is full", "moved 1"] }, "\(ended.current)")
        #expect(try backing(of: "cache/new") == "stored")
    }
}
