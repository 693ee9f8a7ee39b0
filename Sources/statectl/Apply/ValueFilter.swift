import CLinux
@preconcurrency import Glibc
import StateModel

/// A command that reads a value on its standard input and prints another one.
struct ValueFilter {
    let command: ChildCommand
    /// Whether the final line break of what it prints belongs to the value.
    let keepsLineBreak: Bool

    /// The longest value that it may print.
    private static let byteLimit = 256 << 20

    /// Runs the command and waits until it ends.
    ///
    /// It reads a file in memory, so that it may print as much as it likes before it has read all.
    ///
    /// - Returns: What it printed; or a sentence that says why there is none.
    func run(_ value: [UInt8], of key: Key, revision: Int64) -> Result<[UInt8], Refusal> {
        let input = clinux_make_memory("value", value, value.count)
        guard input >= 0, lseek(input, 0, SEEK_SET) == 0 else {
            return .failure(Refusal("the command could not be started: \(lastError)"))
        }
        defer { close(input) }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            return .failure(Refusal("the command could not be started: \(lastError)"))
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let environment = ["STATED_KEY=".bytes + key.bytes, "STATED_REVISION=\(revision)".bytes]
        let (status, child) = command.spawn(
            adding: environment,
            standardInput: input,
            standardOutput: ends[1]
        )
        close(ends[1])
        let printed = ValueFilter.readAll(ends[0])
        close(ends[0])
        guard status == 0 else {
            let reason = String(cString: strerror(status))
            return .failure(Refusal("the command could not be started: \(reason)"))
        }
        let reason = failure(of: child)
        // What is not read any more ends it with SIGPIPE.
        guard printed.count <= ValueFilter.byteLimit else {
            return .failure(Refusal("the command printed more than \(ValueFilter.byteLimit) bytes"))
        }
        if let reason { return .failure(Refusal("the command \(reason)")) }
        return checked(printed)
    }

    private func checked(_ printed: [UInt8]) -> Result<[UInt8], Refusal> {
        guard !keepsLineBreak else { return .success(printed) }
        let value = printed.last == UInt8(ascii: "\n") ? printed.dropLast() : printed[...]
        guard !value.isEmpty else {
            return .failure(Refusal("the command printed nothing; an empty value needs --raw"))
        }
        return .success(Array(value))
    }

    /// What comes until the end; a little more than the longest value at most.
    private static func readAll(_ descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= byteLimit {
            let count = read(descriptor, &block, block.count)
            if count > 0 {
                bytes += block[..<count]
            } else if count == 0 || errno != EINTR {
                break
            }
        }
        return bytes
    }
}

/// Why a value was not converted.
struct Refusal: Error {
    let sentence: String

    init(_ sentence: String) { self.sentence = sentence }
}
