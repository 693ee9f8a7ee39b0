import Glibc

/// A small file system in memory, as long as this object lives.
package final class SmallFileSystem {
    /// Where it is mounted.
    package let path: String

    /// Mounts one; only root may.
    ///
    /// - Parameters:
    ///   - path: A directory, which is made if it is absent.
    ///   - kibibytes: Its size; 0: half of the machine's memory.
    /// - Throws: ``SystemFailure`` if it cannot be mounted.
    package init(at path: String, kibibytes: Int = 32 << 10) throws {
        self.path = path
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw SystemFailure(call: "mkdir", errno)
        }
        let size = kibibytes == 0 ? "50%" : "\(kibibytes)k"
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(size),mode=0700") == 0 else {
            throw SystemFailure(call: "mount", errno)
        }
    }

    deinit { umount2(path, Int32(MNT_DETACH)) }

    /// What its files take.
    ///
    /// - Throws: ``SystemFailure`` if the system does not say.
    package func usedKibibytes() throws -> Int {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw SystemFailure(call: "statvfs", errno) }
        return Int(status.f_blocks - status.f_bfree) * Int(status.f_frsize) / 1_024
    }

    /// Whether this process may mount one.
    package static let isPossible: Bool = {
        guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
        return (try? SmallFileSystem(at: directory.path(of: "try"))) != nil
    }()
}
