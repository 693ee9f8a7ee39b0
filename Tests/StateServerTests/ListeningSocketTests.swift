import Glibc
import StateServer
import StateTestSupport
import Synchronization
import Testing

struct ListeningSocketTests {
    @Test(arguments: [0o600, 0o660, 0o666] as [UInt32])
    func `a socket has exactly its mode and group, whatever the umask is`(mode: UInt32) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "s")
        let socket = try ListeningSocket(path: path, mode: mode, group: getegid())
        var status = stat()
        try #require(lstat(path, &status) == 0)
        #expect(status.st_mode == S_IFSOCK | mode)
        #expect(status.st_gid == getegid())
        socket.close()
        #expect(lstat(path, &status) != 0)
    }

    @Test func `a link in the place of a new socket does not lead to another file`() throws {
        let directory = try TemporaryDirectory()
        let (path, victim) = (directory.path(of: "s"), directory.path(of: "victim"))
        let link = directory.path(of: "link")
        try #require(mknod(victim, S_IFREG | 0o600, 0) == 0)
        let isDone = Atomic(false)
        @Sendable func mode() -> mode_t {
            var status = stat()
            return stat(victim, &status) == 0 ? status.st_mode & 0o777 : 0
        }
        let attackCount = Atomic(0)
        onThreads(2) { number in
            guard number == 0 else {
                // Puts a link in the place of each socket, as soon as there is one.
                while !isDone.load(ordering: .relaxed) {
                    var status = stat()
                    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
                        continue
                    }
                    _ = symlink(victim, link)
                    _ = rename(link, path)
                }
                return
            }
            for _ in 0..<3_000 where mode() == 0o600 {
                do {
                    try ListeningSocket(path: path, mode: 0o666).close()
                } catch {
                    attackCount.wrappingAdd(1, ordering: .relaxed)
                }
                unlink(path)
            }
            isDone.store(true, ordering: .relaxed)
        }
        #expect(mode() == 0o600, "after \(attackCount.load(ordering: .relaxed)) attacks")
    }
}
