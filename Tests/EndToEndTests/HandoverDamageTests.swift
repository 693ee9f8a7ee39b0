import CLinux
import Glibc
import StateTestSupport
import StateWire
import Testing

/// What the last process has left may be damaged: that costs connections, never the daemon.
struct HandoverDamageTests {
    let manager: HandoverManager
    /// The head of a record: 7 numbers; then those of the first session: its length and checksum.
    private static let (headByteCount, sessionHeadByteCount) = (56, 16)

    init() throws {
        manager = try HandoverManager()
        ByteSocket.allow(8_192)
    }

    /// The record of one client that has some of everything.
    private func record() throws -> [UInt8] {
        let peer = try manager.connect()
        for line in [
            "HELLO 3", "CLIENT SETNAME n", "STATE.WATCH w/ v/ BY", "STATE.WATCH x LATEST",
            "SUBSCRIBE c", "PSUBSCRIBE p*", "STATE.HANDLER ATTACH h w/",
            "CLIENT TRACKING ON OPTOUT", "GET t", "STATE.SET l 1 LIFETIME connection", "WATCH a",
            "MULTI", "SET w/1 1", "GET w/1",
        ] {
            #expect(try peer.ask(line).errorText == nil, "\(line)")
        }
        try peer.socket.send("*2\r\n$4\r\nPI")
        _ = try manager.connect().ask("PING")
        try manager.stop()
        var record: [UInt8] = []
        for (_, end) in manager.kept {
            while let (bytes, descriptors) = received(from: end) {
                if bytes == Array("record".utf8) { record = try contents(of: descriptors[0]) }
                for descriptor in descriptors { close(descriptor) }
            }
        }
        forgetKept()
        try #require(record.count > HandoverDamageTests.headByteCount)
        return record
    }

    private func contents(of memory: Int32) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = pread(memory, &bytes, bytes.count, 0)
        return Array(bytes[..<max(0, count)])
    }

    private func forgetKept() {
        for (_, descriptor) in manager.kept { close(descriptor) }
        manager.kept = []
    }

    /// Leaves a record and new sockets for its sessions to the next process.
    ///
    /// - Returns: The other ends of the sockets.
    private func leave(_ record: [UInt8], sessions: Int) throws -> [Int32] {
        func pair(_ type: __socket_type) throws -> [Int32] {
            var ends: [Int32] = [-1, -1]
            let type = Int32(type.rawValue) | O_CLOEXEC | O_NONBLOCK
            try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
            return ends
        }
        let stream = try pair(SOCK_SEQPACKET)
        let memory = clinux_make_memory("record", record, record.count)
        #expect(clinux_send_descriptors(stream[0], nil, 0, "record", 6, [memory], 1) == 6)
        close(memory)
        var peers: [Int32] = []
        for start in stride(from: 0, to: sessions, by: 200) {
            let numbers = (start..<min(start + 200, sessions)).map { UInt32($0).littleEndian }
            let pairs = try numbers.map { _ in try pair(SOCK_STREAM) }
            let (ends, size) = (pairs.map { $0[0] }, 4 * numbers.count)
            let count = Int32(ends.count)
            #expect(clinux_send_descriptors(stream[0], nil, 0, numbers, size, ends, count) == size)
            for end in ends { close(end) }
            peers += pairs.map { $0[1] }
        }
        manager.kept = stream.map { ("stated-handover", $0) }
        return peers
    }

    /// Starts a process on a record, uses it, and stops it.
    private func run(on record: [UInt8], sessions: Int) throws {
        let peers = try leave(record, sessions: sessions)
        defer { for peer in peers { close(peer) } }
        try manager.start()
        let commands = "\r\nEXEC\r\nPING\r\nSET w/1 2\r\n"
        for peer in peers { _ = send(peer, commands, commands.utf8.count, Int32(MSG_NOSIGNAL)) }
        let client = try manager.connect()
        for line in [
            "SET w/1 1", "SET x 1", "SET t 1", "PUBLISH c 1", "PUBLISH p1 1", "CLIENT LIST",
        ] {
            #expect(try client.ask(line).errorText == nil)
        }
        #expect(try client.ask("PING") == .simple("PONG"))
        try manager.stop()
        forgetKept()
    }

    @Test func `a record in which one byte is damaged is no reason to crash`() throws {
        let record = try record()
        let count = HandoverDamageTests.headByteCount + HandoverDamageTests.sessionHeadByteCount
        for place in 0..<count {
            var damaged = record
            damaged[place] ^= 0xFF
            try run(on: damaged, sessions: 1)
            #expect(!manager.log.contains("go on: 1"), "byte \(place)")
        }
        for length in stride(from: 0, to: record.count, by: 37) where length > 0 {
            try run(on: Array(record[..<length]), sessions: 1)
        }
        #expect(!manager.log.contains("go on: 1"))
        try run(on: record, sessions: 1)
        #expect(manager.log.contains("go on: 1"))
    }

    /// As a daemon with an error would write them: the checksums are those of the damaged bytes.
    @Test(arguments: [0x01, 0x80, 0xFF] as [UInt8])
    func `sessions in which one byte is another are no reason to crash`(_ mask: UInt8) throws {
        let record = try record()
        let start = HandoverDamageTests.headByteCount + HandoverDamageTests.sessionHeadByteCount
        let session = Array(record[start...])
        var sessions: [[UInt8]] = []
        for place in 8..<session.count {
            var damaged = session
            damaged[place] ^= mask
            damaged.replaceSubrange(0..<8, with: number(sessions.count + 1))
            sessions.append(damaged)
        }
        var all = Array(record[..<32])
        all += number(sessions.count) + number(sessions.count)
        all += number(checksum(all))
        for session in sessions {
            all += number(session.count) + number(checksum(session)) + session
        }
        try run(on: all, sessions: sessions.count)
        #expect(manager.log.contains("its record is damaged"))
    }

    private func number(_ number: Int) -> [UInt8] {
        withUnsafeBytes(of: Int64(number).littleEndian) { Array($0) }
    }

    private func checksum(_ bytes: [UInt8]) -> Int { Int(clinux_crc32c(0, bytes, bytes.count)) }
}
