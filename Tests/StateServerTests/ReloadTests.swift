import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What the server does with a configuration, wherever that comes from.
struct ReloadTests {
    /// What a configuration does that is taken over.
    private enum Step: Sendable {
        case refuse, limit

        func apply(_ core: KeyspaceCore, _ options: inout ServerOptions) -> ReloadReport {
            options.limits.valueByteCount = 2
            core.admission.limits = options.limits
            return ReloadReport(
                changed: [.init(rule: 3, keys: [0x61], option: "o", old: nil, new: "1")],
                needsRestart: []
            )
        }
    }

    /// A source of these, one after the other, and then of none.
    private func served(
        _ steps: [Step],
        ended: Observed<[String]> = Observed([])
    ) throws -> ServedKeyspace {
        let rest = Observed(steps)
        let source = ConfigurationSource(
            read: { (_) throws(StateError) in
                let step = rest.update { $0.isEmpty ? nil : $0.removeFirst() }
                guard let step else { throw StateError(.err, "nothing can be read") }
                if step == .refuse { throw StateError(.tooBig, "a directory is missing") }
                return { core, options in step.apply(core, &options) }
            },
            preview: { (_, _) throws(StateError) in
                var preview = ReloadPreview()
                preview.errors = rest.update { $0.isEmpty } ? [["f:1:2: no", "  1 | x"]] : []
                preview.report.changed = [.init(option: "o", old: nil, new: "1")]
                (preview.checkedCount, preview.refusedCount) = (2, 1)
                preview.refused = [([0x6B], 7, "too long")]
                return preview
            },
            onEnd: { result in
                let text =
                    switch result {
                    case .success(let report): "from \(report.revision)"
                    case .failure(let error): error.message
                    }
                ended.update { $0.append(text) }
            }
        )
        return try ServedKeyspace(MemoryBacking()) { _ in
        } preparing: { server in
            server.reloads(from: source)
            server.refusesFiles { [RefusedFile(path: "/f", issue: "no")] }
        }
    }

    @Test func `what refuses the whole leaves everything as it was`() throws {
        let ended = Observed<[String]>([])
        let server = try served([.refuse, .limit], ended: ended)
        let peer = try server.connect()
        let transcript = """
            > STATE.RELOAD
            > SET k 123
            > CONFIG GET proto-max-bulk-len
            -TOOBIG a directory is missing
            +OK
            ["proto-max-bulk-len", "8388608"]
            > STATE.RELOAD
            > SET k 123
            > SET k 12
            ["revision", 2, "changed", [[3, "a", "o", (nil), "1"]], "restart", []]
            -TOOBIG the value of key 'k' has 3 bytes; the limit is 2
            +OK
            """
        #expect(try peer.replay(transcript) == transcript)
        #expect(ended.wait { $0 == ["a directory is missing", "from 2"] })
    }

    @Test func `what cannot be read is answered, and each asks anew`() throws {
        let server = try served([])
        let peer = try server.connect()
        try peer.send("STATE.RELOAD", "STATE.RELOAD", "PING")
        #expect(
            try peer.next(3).map(\.shown) == [
                "-ERR nothing can be read", "-ERR nothing can be read", "+PONG",
            ]
        )
    }

    @Test func `a server without a source says so, and STATE.CHECK ends with the files`() throws {
        let server = try ServedKeyspace()
        #expect(
            try server.connect().ask("STATE.RELOAD").errorText
                == "ERR no configuration file is in use, nothing to reload; see --config in stated --help"
        )
        let other = try served([])
        let peer = try other.connect()
        _ = try peer.ask("MSET a 1 b 2")
        #expect(
            try peer.ask("STATE.CHECK / LIMIT 0").shown
                == #"["checked", 1, "next", "a", "refused", [], "files", []]"#
        )
        #expect(
            try peer.ask("STATE.CHECK / AFTER a").shown
                == #"["checked", 1, "next", (nil), "refused", [], "files", [["/f", "no"]]]"#
        )
        #expect(try peer.ask("STATE.CHECK a b").errorText?.hasPrefix("ERR syntax error") == true)
        #expect(try peer.ask("STATE.CHECK AFTER b LIMIT 5").shown.hasPrefix(#"["checked", 0"#))
    }
}
