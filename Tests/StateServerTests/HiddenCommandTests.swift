import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What commands of administrators, and about trees of keys, leave out or refuse because of hidden
/// keys.
struct HiddenCommandTests {
    private static let hidden = #"{"keys": "tree/m/", "read": ["other"], "write": ["other"]}"#
    private let stage: AccessStage

    init() throws {
        stage = try AccessStage(#"\#(Self.hidden), {"keys": "/", "admin": ["me"]}"#) {
            $0.stepCount = 500
        }
        try stage.change(
            [("tree/a", "1"), ("tree/z/1", "1")] + (0..<2_000).map { ("tree/m/\($0)", "hidden") }
        )
    }

    @Test func `MONITOR and RANDOMKEY are refused to who may not read all keys`() throws {
        let peer = try stage.connect()
        for command in ["MONITOR", "RANDOMKEY"] {
            let text = try #require(try peer.ask(command).errorText)
            #expect(text.hasPrefix("NOPERM \(command) would show"), "\(text)")
        }
    }

    @Test func `MONITOR ends with the right to it`() throws {
        let everything = #"{"keys": "/", "admin": ["me"], "read": ["*"]}"#
        try stage.exchange(everything)
        let (monitor, peer) = (try stage.connect(), try stage.connect())
        #expect(try monitor.ask("MONITOR") == .simple("OK"))
        _ = try peer.ask("GET a")
        #expect(try monitor.next().textValue?.hasSuffix(#""GET" "a""#) == true)
        try stage.exchange(Self.hidden)
        _ = try peer.ask("GET b")
        #expect(throws: (any Error).self) { while true { _ = try monitor.next() } }
    }

    @Test func `SLOWLOG shows no arguments to who may not read all keys`() throws {
        let peer = try stage.connect()
        var count = 20_000
        while try peer.ask("SLOWLOG LEN") == .integer(0) {
            _ = try peer.ask("MSET " + (0..<count).map { "a/\($0) v" }.joined(separator: " "))
            count *= 2
        }
        let entry = try #require(try peer.ask("SLOWLOG GET 1").elements?.first?.elements)
        #expect(entry[3].elements?.map(\.textValue) == ["MSET"])
    }

    @Test func `CHILDREN skips hidden keys, and counts them in a transaction`() throws {
        let peer = try stage.connect()
        let names = try peer.ask("STATE.LIST tree/ CHILDREN").elements?.map {
            $0.elements?.first?.textValue
        }
        #expect(names == ["tree/a", "tree/z/"])
        try stage.exchange(Self.hidden)
        for command in ["MULTI", "STATE.LIST tree/ CHILDREN"] { _ = try peer.ask(command) }
        let text = try #require(try peer.ask("EXEC").errorText)
        #expect(text.contains("more than 500 entries in one transaction"), "\(text)")
        #expect(try peer.ask("PING") == .simple("PONG"))
    }
}
