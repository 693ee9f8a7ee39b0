import Glibc
import StateTestSupport
import StateWire
import Testing

/// A log that nobody reads.
struct LogTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// A stream that takes nothing more.
    private func fullPipe() throws -> Pipe {
        let pipe = try Pipe()
        let bytes = [UInt8](repeating: UInt8(ascii: "."), count: 4_096)
        for count in [4_096, 1] {
            while send(pipe.writeEnd, bytes, count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) > 0 {}
        }
        return pipe
    }

    private func start() throws -> Program {
        let path = try directory.write("{}", to: "stated.json5")
        return try Program(
            [
                builtProgram("stated"), "--socket", directory.path(of: "s"), "--data",
                directory.path(of: "data"), "--memory", "--config", path,
            ],
            environment: ["HOME": directory.path(of: "home")],
            errorPipe: try fullPipe()
        )
    }

    @Test func `keeps nobody waiting, and what is read later is all there`() throws {
        let program = try start()
        let socket = try RawSocket.connected(to: directory.path(of: "s"))
        try socket.ask("PING", awaiting: "+PONG\r\n")
        try program.waitForErrors(containing: "serves \(directory.path(of: "s"))")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        #expect(program.errors.hasSuffix("stated: info: stopped by SIGTERM\n"))
        #expect(!program.errors.contains("were dropped"))
    }

    @Test func `has a bound: beyond it lines are dropped, and counted where they are missing`()
        throws
    {
        let program = try start()
        let peer = try Peer(waiting: directory.path(of: "s"))
        // Each reload writes four lines: the error, its line with a caret, and that it failed.
        try directory.write("{", to: "stated.json5")
        for _ in 0..<1_500 {
            let reply = try peer.ask("STATE.RELOAD")
            try #require(reply.errorText != nil)
        }
        let dropped = try #require(
            try peer.ask("STATE.STATUS").elements.flatMap { fields in
                fields.firstIndex(of: .bulk(Array("log_lines_dropped".utf8))).flatMap {
                    fields[$0 + 1].integerValue.map { Int($0) }
                }
            }
        )
        #expect(dropped > 0)
        try program.waitForErrors(containing: "stated: warning: \(dropped) log lines were dropped")
        #expect(try peer.ask("PING") == .simple("PONG"))
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        let count = program.errors.split(separator: "\n").count {
            !$0.contains(": info: ") && !$0.contains(" log lines were dropped")
        }
        #expect(count + dropped == 4 * 1_500)
    }

    @Test func `keeps no daemon from ending that nobody reads of`() throws {
        let program = try start()
        let socket = try RawSocket.connected(to: directory.path(of: "s"))
        try socket.ask("PING", awaiting: "+PONG\r\n")
        program.send(SIGTERM)
        let hasEnded = eventually {
            kill(program.pid, 0) != 0 || waitpid(program.pid, nil, WNOHANG | WNOWAIT) != 0
        }
        #expect(hasEnded)
    }
}

extension Peer {
    /// Connects as soon as somebody serves.
    fileprivate convenience init(waiting path: String) throws {
        try RawSocket.connected(to: path).ask("PING", awaiting: "+PONG\r\n")
        try self.init(path)
    }
}
