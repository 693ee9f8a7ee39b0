import Glibc

/// Why a command ended early.
enum BenchError: Error {
    /// The command line is not valid.
    case usage(String)
    /// The machine or the server failed.
    case failed(String)
    /// The server broke one of its guarantees; the key shows it.
    case broken(law: String, key: String, String)

    /// The failure of the system call named `call`, from errno.
    static func system(_ call: String) -> BenchError {
        .failed("\(call): \(String(cString: strerror(errno)))")
    }

    var message: String {
        switch self {
        case .usage(let text), .failed(let text): text
        case .broken(let law, let key, let text): "broken law: \(law): key '\(key)': \(text)"
        }
    }

    var exitCode: Int32 {
        switch self {
        case .usage: 2
        case .failed: 1
        case .broken: 3
        }
    }
}
