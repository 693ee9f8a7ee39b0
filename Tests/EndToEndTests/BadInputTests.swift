import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// The daemon with its default limits, and clients that do everything wrong.
struct BadInputTests {
    private let daemon: Daemon
    private let large = [UInt8](repeating: 0x76, count: 8 << 10)

    init() throws { daemon = try Daemon() }

    /// Resident memory in KiB.
    private func residentKibibytes() throws -> Int {
        let status = String(decoding: try readFile("/proc/\(daemon.pid)/status"), as: UTF8.self)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try #require(Int(line.filter(\.isNumber)))
    }

    private func frame(_ words: [UInt8]...) -> [UInt8] {
        var writer = RequestWriter()
        writer.append(words)
        return writer.bytes
    }

    private func word(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// Sends bytes and waits until the answer, or the connection, ends with `text`.
    private func send(_ bytes: [UInt8], awaiting text: String) throws {
        let socket = try ByteSocket(path: daemon.socketPath)
        try? socket.send(bytes)
        var answer = ""
        while !answer.hasSuffix(text), let more = try socket.receive() {
            answer += String(decoding: more, as: UTF8.self)
        }
        #expect(answer.hasSuffix(text), "\(answer.suffix(200))")
    }

    @Test func `after all bad input the daemon serves, and its memory is what it was`() throws {
        ByteSocket.allow(2_500)
        let client = try daemon.connect()
        try client.set(large, for: "large")
        try client.set(word("1"), for: "k")
        try sendWellFormed()
        let before = try residentKibibytes()
        try sendBroken()
        try sendTooMuch()
        try leaveHalfway()
        try neverRead()
        let idle = try manyArguments()
        try sendWellFormed()
        try manyClients()
        #expect(try client.value(for: "k") == word("1"))
        #expect(try client.value(for: "large") == large)
        #expect(try client.count(of: .everything) == 2)
        let grown = try residentKibibytes() - before
        // The heaps of the threads that settle the log keep some MiB each.
        #expect(grown < 48 << 10, "\(grown) KiB more, beside \(idle.count) idle clients")
        #expect(try daemon.stop() == 0)
    }

    private func sendWellFormed() throws {
        let pings = (0..<10_000).flatMap { frame(word("ECHO"), word(String($0))) }
        try send(pings, awaiting: "$4\r\n9999\r\n")
    }

    private func sendBroken() throws {
        for bytes in [
            "*99999999999999999999\r\n", "*x\r\n", "*1\r\n$-1\r\n",
            "*1\r\n$1073741824\r\n",
            "*1\r\n*1\r\n$4\r\nPING\r\n", "*1\r\n$4\r\nPINGPONG\r\n", "SET \"k 2\r\n",
            String(repeating: "x", count: 70_000),
        ] {
            let socket = try ByteSocket(path: daemon.socketPath)
            try? socket.send(bytes)
            let answer = String(decoding: try socket.receiveAll(), as: UTF8.self)
            #expect(answer.hasPrefix("-ERR Protocol error: "), "\(bytes.prefix(40))")
        }
        for key in [[], Array(repeating: 0x61, count: 1_025), [0xFF], [0x0A], word("a/")] {
            let bytes = frame(word("SET"), key, word("2")) + frame(word("PING"))
            try send(bytes, awaiting: "\r\n+PONG\r\n")
        }
        try send(word("GET\r\nFROB k\r\nSET k\r\nPING\r\n"), awaiting: "\r\n+PONG\r\n")
    }

    private func sendTooMuch() throws {
        let whole = [UInt8](repeating: 0x76, count: 8 << 20)
        let refusal = "-TOOBIG an argument has 8388609 bytes; the limit is 8388608\r\n"
        for _ in 0..<4 {
            try send(frame(word("SET"), word("k"), whole + [0x76]), awaiting: refusal)
            try send(
                frame(word("SET"), word("whole"), whole)
                    + frame(word("APPEND"), word("whole"), [0x76])
                    + frame(word("DEL"), word("whole")),
                awaiting:
                    "+OK\r\n-TOOBIG the value of key 'whole' has 8388609 bytes; the limit is 8388608\r\n"
                    + ":1\r\n"
            )
        }
    }

    private func leaveHalfway() throws {
        let bytes = frame(word("SET"), word("k"), [UInt8](repeating: 0x76, count: 4 << 20))
        for count in [1, 5, 20, 100_000, 4 << 20] {
            let sockets = try (0..<8).map { _ in try ByteSocket(path: daemon.socketPath) }
            for socket in sockets { try socket.send(Array(bytes.prefix(count))) }
        }
    }

    private func neverRead() throws {
        let gets = (0..<10_000).flatMap { _ in frame(word("GET"), word("large")) }
        let sockets = try (0..<3).map { _ in try ByteSocket(path: daemon.socketPath) }
        for socket in sockets { try socket.sendAtOnce(gets[...]) }
        try send(word("PING\r\n"), awaiting: "+PONG\r\n")
    }

    /// Clients that stay after one command of very many arguments.
    private func manyArguments() throws -> [ByteSocket] {
        let bytes = frame(word("EXISTS")).dropFirst(4)
        let keys = (0..<400_000).flatMap { _ in word("$1\r\nx\r\n") }
        return try (0..<10).map { _ in
            let socket = try ByteSocket(path: daemon.socketPath)
            try socket.send(word("*400001\r\n") + bytes + keys)
            #expect(try socket.receive() == word(":0\r\n"))
            return socket
        }
    }

    private func manyClients() throws {
        let sockets = try (0..<1_000).map { _ in try ByteSocket(path: daemon.socketPath) }
        for socket in sockets { try socket.send("SET n 1\r\nDEL n\r\n") }
        for socket in sockets {
            var answer: [UInt8] = []
            while answer.count < 9 { answer += try #require(try socket.receive()) }
            #expect(answer.prefix(5) == word("+OK\r\n")[...])
        }
        try send(word("DEL n\r\n"), awaiting: ":0\r\n")
    }
}
