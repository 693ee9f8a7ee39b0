import Glibc
import StateModel

/// `--ready-fd N`: the descriptor on which a watch says that it has begun.
///
/// From then on it gets each change; before, a change could be missed. The line is the revision at
/// which it began; then the descriptor is closed.
struct ReadyNotice {
    private let descriptor: Int32

    /// Nil if the option was not given.
    ///
    /// - Throws: ``Failure/usage(_:)`` if the descriptor is not open: before anything else is opened,
    ///   which would get its number.
    init?(_ invocation: Invocation) throws(Failure) {
        guard let number = try invocation.number("--ready-fd", atLeast: 0) else { return nil }
        guard let descriptor = Int32(exactly: number), fcntl(descriptor, F_GETFD) >= 0 else {
            throw .usage("--ready-fd \(number): no descriptor of that number is open")
        }
        self.descriptor = descriptor
        // The command of a watch does not get it: its reader waits for the end.
        if descriptor > STDERR_FILENO { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    }

    /// - Throws: ``Failure/output(_:)`` if it cannot be written. That nobody reads it is no failure.
    func send(_ revision: Int64) throws(Failure) {
        let status = writeAll("\(revision)\n".bytes, to: descriptor)
        guard status == 0 || status == EPIPE else {
            throw .output("--ready-fd \(descriptor): \(String(cString: strerror(status)))")
        }
        if descriptor > STDERR_FILENO { close(descriptor) }
    }
}
