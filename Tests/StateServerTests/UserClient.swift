import Glibc
import StateServer
import StateTestSupport
import Testing

/// A client of another user.
struct UserClient {
    let uid: UInt32
    let peer: Peer
}

extension ServedKeyspace {
    func connect(as name: String) throws -> UserClient {
        let user = try #require(TestUser(name))
        let directory = String(socketPath.dropLast(2))
        #expect(chmod(directory, 0o755) == 0 && chmod(socketPath, 0o666) == 0)
        return UserClient(uid: user.uid, peer: Peer(try user.connect(to: socketPath)))
    }
}
