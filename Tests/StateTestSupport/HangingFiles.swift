import Glibc

/// A lease on a file: whoever opens the file waits until this is released, or for the kernel's 45 s.
///
/// See F_SETLEASE in fcntl_locking(2). Nobody may have the file open when it begins.
package final class FileLease {
    private let descriptor: Int32

    package init(on path: String) throws {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure(call: "open", errno) }
        // By default the signal would end this process: F_SETSIG and F_SETLEASE, which Swift lacks.
        guard fcntl(descriptor, 10, SIGURG) == 0, fcntl(descriptor, 1_024, Int32(F_WRLCK)) == 0
        else { throw SystemFailure(call: "fcntl", errno) }
    }

    deinit { close(descriptor) }
}

/// A file system that answers nobody, as a network file system whose server is gone.
package final class DeadFileSystem {
    private let path: String
    private let device: Int32

    /// Mounts one at an empty directory; only root may.
    package init(at path: String) throws {
        self.path = path
        device = open("/dev/fuse", O_RDWR | O_CLOEXEC)
        let options = "fd=\(device),rootmode=40000,user_id=0,group_id=0"
        guard device >= 0, mount("fuse", path, "fuse", 0, options) == 0 else {
            throw SystemFailure(call: "mount", errno)
        }
    }

    /// Whoever waits for it gets an error.
    deinit {
        umount2(path, Int32(MNT_DETACH))
        close(device)
    }

    /// Whether this process may mount one.
    package static let isPossible: Bool = {
        guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
        return (try? DeadFileSystem(at: directory.path)) != nil
    }()
}
