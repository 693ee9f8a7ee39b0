import Glibc

/// Why the checker cannot go on; no finding about the daemon.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// What a system call did, with errno.
    static func ofCall(_ call: String) -> Failure {
        Failure("\(call): \(String(cString: strerror(errno)))")
    }
}
