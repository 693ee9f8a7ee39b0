import Glibc
import StateTestSupport
import StateWire
import Testing

/// Keys that become due while nothing can be stored; `scripts/endure disk` is the long form.
@Suite(.enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"))
struct ExpiryDiskTests {
    private static let rounds = Extent.named("STATED_EXPIRY_DISK_ROUNDS", short: 1)
    private static let count = 500

    @Test func `keys on a full disk are absent once they are due, and deleted once there is room`()
        throws
    {
        for round in 0..<ExpiryDiskTests.rounds {
            try fill(isKilled: round % 2 == 0)
        }
        print(
            "disk: \(ExpiryDiskTests.rounds) rounds of \(ExpiryDiskTests.count) keys due on a full disk"
        )
    }

    private func fill(isKilled: Bool) throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "data"))
        try directory.write("{ limits: { reserveBytes: '0' } }", to: "c.json5")
        let daemon = try Daemon(["--config", directory.path(of: "c.json5")], directory: directory)
        var peer = try Peer(daemon.socketPath)
        let value = String(repeating: "v", count: 1_000)
        for number in 0..<ExpiryDiskTests.count {
            _ = try peer.ask("SET due/\(number) \(value) PX \(1_500 + number % 500)")
        }
        _ = try peer.ask("SET long \(value) EX 3600")
        let observer = try Peer(daemon.socketPath)
        _ = try observer.ask("HELLO 3")
        _ = try observer.ask("STATE.WATCH due/")
        // As full as it can be: nothing can be appended to the log.
        _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "data/ballast")
        for size in [4_096, 256, 1] {
            while case .error = try peer.ask("SET fill \(String(repeating: "f", count: size))") {
                break
            }
        }
        #expect(
            try eventually(within: .seconds(60)) {
                try peer.ask("EXISTS due/0 due/250 due/499") == .integer(0)
            }
        )
        #expect(try peer.ask("STATE.LIST due/").elements == [])
        if isKilled {
            // Storage has them still, and nobody reads them.
            daemon.kill()
            unlink(directory.path(of: "data/ballast"))
            try daemon.start()
            peer = try Peer(daemon.socketPath)
        } else {
            unlink(directory.path(of: "data/ballast"))
            var gone: Set<String> = []
            while gone.count < ExpiryDiskTests.count {
                guard case .push(let parts) = try observer.next(),
                    parts[0].textValue == "state.change"
                else { continue }
                for change in parts[3].elements ?? [] {
                    #expect(change.elements?[1] == .null)
                    if let key = change.elements?[0].textValue { gone.insert(key) }
                }
            }
        }
        #expect(try peer.ask("EXISTS due/0 due/250 due/499") == .integer(0))
        #expect(
            try eventually(within: .seconds(60)) { try peer.ask("DBSIZE").integerValue ?? 9 <= 2 }
        )
        #expect(try peer.ask("STRLEN long") == .integer(1_000))
        let left = try #require(try peer.ask("PTTL long").integerValue)
        #expect((3_000_000...3_600_000).contains(left))
        daemon.kill()
        try daemon.start()
        peer = try Peer(daemon.socketPath)
        #expect(try peer.ask("STATE.LIST due/ COUNT") == .integer(0))
        #expect(try peer.ask("STRLEN long") == .integer(1_000))
        try daemon.stop()
        withExtendedLifetime(disk) {}
    }
}
