import Glibc
import StateClient
import StateContainers
import StateEngine
import StateTestSupport
import Testing

/// Containers whose values end by themselves, and locks, on a daemon.
struct RemoteLockTests {
    private let daemon: Daemon
    private let keyspace: RemoteKeyspace

    init() throws {
        daemon = try Daemon()
        keyspace = try RemoteKeyspace(socket: daemon.socketPath)
    }

    @Test func `a container's values expire, and the default takes their place`() throws {
        let state = try RemoteState(0, key: "n", in: keyspace, expires: .seconds(3_600))
        let client = try daemon.connect()
        func left() throws -> Client.Lifetime? { try client.lifetime(of: "n") }
        try state.modify(1)
        guard case .limited(let time)? = try left(), time > .seconds(60) else {
            Issue.record("the value does not expire: \(String(describing: try left()))")
            return
        }
        try withTransaction { tx in tx[state] = 2 }
        #expect(try left() != .unlimited)
        try state.modify(3, expires: .seconds(50))
        guard case .limited(let shorter)? = try left(), shorter <= .seconds(50) else {
            Issue.record("the value has another time")
            return
        }
        try state.modify(expires: .milliseconds(1)) { $0 = 4 }
        #expect(eventually { state.value == 0 })
        #expect(throws: StateError.self) { try state.modify(1, expires: .zero) }
        #expect(throws: StateError.self) {
            try RemoteState(0, key: "x", in: keyspace, expires: .seconds(1), lifetime: .process)
        }
    }

    @Test func `a container's entry ends with its connection, and stays over a restart`() throws {
        let own = try RemoteKeyspace(socket: daemon.socketPath)
        let state = try RemoteState(0, key: "n", in: own, lifetime: .connection)
        let observer = try RemoteState(0, key: "n", in: keyspace)
        try state.modify(1)
        #expect(eventually { observer.value == 1 })
        #expect(try daemon.connect().entry(for: "n")?.lifetime == .connection)
        daemon.kill()
        try daemon.start()
        // It has claimed its key once it can set again.
        _ = try retried(while: .unreachable) { try state.modify(2) }
        #expect(eventually { observer.value == 2 })
        own.close()
        #expect(eventually { observer.value == 0 && observer.status == .current })
    }

    @Test func `a lock is held by one at a time`() throws {
        let lock = try RemoteLock("l", in: keyspace)
        let inside = Observed(0)
        let tokens = Observed<[Int64]>([])
        onThreads(8) { _ in
            for _ in 0..<10 {
                do {
                    try lock.withLock { grant in
                        let count = inside.update {
                            $0 += 1
                            return $0
                        }
                        #expect(count == 1 && !grant.isLost)
                        tokens.update { $0.append(grant.token) }
                        inside.update { $0 -= 1 }
                    }
                } catch {
                    Issue.record("\(error)")
                }
            }
        }
        let seen = tokens.current
        #expect(seen.count == 80 && zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
        #expect(try daemon.connect().count(of: "locks/") == 0)
    }

    @Test func `a wait ends in time, with who has the lock`() async throws {
        let (lock, other) = (try RemoteLock("l", in: keyspace), try RemoteLock("l", in: keyspace))
        try await lock.withLock { _ in
            do {
                try await other.withLock(waitingUpTo: .milliseconds(20)) { _ in
                    Issue.record("two have the lock")
                }
            } catch let error as StateError {
                #expect(error.code == .conflict && error.message.contains("process \(getpid())"))
            }
        }
        #expect(try await other.withLock { $0.token } > 0)
        #expect(try daemon.connect().count(of: "locks/") == 0)
    }

    @Test func `shared holders are together, and a lost lock says so`() async throws {
        let lock = try RemoteLock("l", isShared: true, in: keyspace)
        let client = try daemon.connect()
        try await lock.withLock { first in
            try await lock.withLock { second in
                #expect(first.token < second.token && !first.isLost)
                try client.delete([.init(literal: Array("locks/l/".utf8))])
                #expect(eventually { first.isLost && second.isLost })
            }
        }
        #expect(throws: StateError.self) { try RemoteLock("a\u{0}b", in: keyspace) }
    }
}
