import Glibc

/// One life of the simulated daemon: from its start to its end, however that comes.
///
/// The program runs while the world outside waits, and the reverse, so that nothing depends on who is sooner.
final class Life {
    /// What the kernel says; see `struct message` in kernel.c.
    struct Message {
        var kind: Int64 = 0
        /// Nanoseconds since the system was started.
        var time: Int64 = 0
        var steps: UInt64 = 0
        var trace: UInt64 = 0
        var reason = ""
    }

    /// What the world outside does with the process, beside what it sends.
    enum Deed {
        case none, kill, terminate
    }

    private let process: pid_t
    private let control: Int32

    /// Starts it; it runs until its first turn ends.
    init(_ arguments: [String], environment: [String], log: String) {
        var pair: [Int32] = [0, 0]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
        control = pair[0]
        let child = fork()
        if child == 0 {
            close(pair[0])
            dup2(pair[1], 9)
            if pair[1] != 9 { close(pair[1]) }
            let file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            dup2(file, 1)
            dup2(file, 2)
            close(file)
            var words = (["env", "-i"] + environment + arguments).map { strdup($0) }
            words.append(nil)
            execvp("env", words)
            _exit(127)
        }
        close(pair[1])
        process = child
    }

    deinit { close(control) }

    /// Waits until it is the turn of the world outside, or the process has ended.
    func wait() -> Message? {
        var bytes = [UInt8](repeating: 0, count: 64)
        var count = 0
        while count < bytes.count {
            let part = bytes.withUnsafeMutableBytes {
                read(control, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            guard part > 0 else { return nil }
            count += part
        }
        return bytes.withUnsafeBytes { bytes in
            Message(
                kind: bytes.load(fromByteOffset: 0, as: Int64.self),
                time: bytes.load(fromByteOffset: 8, as: Int64.self),
                steps: bytes.load(fromByteOffset: 16, as: UInt64.self),
                trace: bytes.load(fromByteOffset: 24, as: UInt64.self),
                reason: String(decoding: bytes[32...].prefix { $0 != 0 }, as: UTF8.self)
            )
        }
    }

    /// Ends the turn of the world outside.
    func go(on deed: Deed = .none, nextAfter nanoseconds: Int64) {
        let signal: Int64 =
            switch deed {
            case .none: 0
            case .kill: 1
            case .terminate: Int64(SIGTERM)
            }
        withUnsafeBytes(of: (nanoseconds, signal)) { _ = write(control, $0.baseAddress, $0.count) }
    }

    /// Waits for its end.
    func end() -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
