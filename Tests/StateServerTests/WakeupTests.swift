import Glibc
import StateEngine
import StateServer
import StateTestSupport
import Testing

/// What wakes the loop, once the loop has ended.
struct WakeupTests {
    @Test func `what the commit thread wakes is closed with the keyspace, not before`() throws {
        let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
        weak var wakeup: Wakeup?
        do {
            let server = Server(keyspace: keyspace, options: ServerOptions(version: "0"))
            wakeup = server.wakeup
        }
        // As at a stop: what is queued is committed after the server has ended.
        let descriptor = try #require(wakeup?.descriptor)
        _ = keyspace.submit([.set("k", [1])]) { _ in }
        #expect(fcntl(descriptor, F_GETFD) >= 0)
        keyspace.close()
        #expect(wakeup == nil)
    }
}
