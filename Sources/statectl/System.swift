@preconcurrency import Glibc

/// The error text of the last system call that failed.
var lastError: String { String(cString: strerror(errno)) }

/// A variable of the environment; nil if it is not set or empty.
func environmentVariable(_ name: String) -> String? {
    guard let value = getenv(name), value[0] != 0 else { return nil }
    return String(cString: value)
}

/// The environment of this process without the variables that get new values.
func inheritedEnvironment(without variables: [[UInt8]]) -> [[UInt8]] {
    let names = variables.map { $0.prefix { $0 != UInt8(ascii: "=") } + [UInt8(ascii: "=")] }
    var kept: [[UInt8]] = []
    var entry = environ
    while let variable = entry.pointee {
        let bytes = Array(UnsafeRawBufferPointer(start: variable, count: strlen(variable)))
        if !names.contains(where: { bytes.starts(with: $0) }) { kept.append(bytes) }
        entry += 1
    }
    return kept
}

/// The number of this process.
var processNumber: Int32 { getpid() }

/// A list of C strings that ends in nil; the caller frees each.
func cStrings(_ strings: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
    strings.map { string in strdup(string.map { CChar(bitPattern: $0) } + [0]) } + [nil]
}

/// Writes all of the bytes, however long that takes.
///
/// - Returns: 0, or the error number.
func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    var written = 0
    while written < bytes.count {
        let count = bytes.withUnsafeBytes { bytes in
            write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
        }
        if count >= 0 {
            written += count
        } else if errno == EAGAIN {
            // Another process made it non-blocking.
            var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            poll(&waiting, 1, -1)
        } else if errno != EINTR {
            return errno
        }
    }
    return 0
}

/// Waits for a child to end.
///
/// Returns nil if it ended with 0.
func failure(of child: pid_t) -> String? {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 {
        guard errno == EINTR else { return "ended with an unknown exit code: \(lastError)" }
    }
    let signal = status & 0x7F
    if signal != 0 { return "was ended by signal \(signal)" }
    return status == 0 ? nil : "failed with exit code \(status >> 8 & 0xFF)"
}

extension String {
    /// In UTF-8.
    var bytes: [UInt8] { Array(utf8) }
}
