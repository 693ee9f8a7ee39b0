import CLinux
@preconcurrency import Glibc
import StateModel

/// A command that reads a value on its standard input and prints another one.
struct ValueFilter {
    /// The program, found by PATH, and its arguments.
    let arguments: [[UInt8]]
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
        let (status, child) = spawn(adding: environment, input: input, output: ends[1])
        close(ends[1])
        let printed = ValueFilter.readAll(ends[0])
        close(ends[0])
        guard status == 0 else {
            let reason = String(cString: strerror(status))
            return .failure(Refusal("the command could not be started: \(reason)"))
        }
        if let reason = failure(of: child) { return .failure(Refusal("the command \(reason)")) }
        return checked(printed)
    }

    private func checked(_ printed: [UInt8]) -> Result<[UInt8], Refusal> {
        guard printed.count <= ValueFilter.byteLimit else {
            return .failure(Refusal("the command printed more than \(ValueFilter.byteLimit) bytes"))
        }
        guard !keepsLineBreak else { return .success(printed) }
        let value = printed.last == UInt8(ascii: "\n") ? printed.dropLast() : printed[...]
        guard !value.isEmpty else {
            return .failure(Refusal("the command printed nothing; an empty value needs --raw"))
        }
        return .success(Array(value))
    }

    private func spawn(
        adding variables: [[UInt8]],
        input: Int32,
        output: Int32
    ) -> (status: Int32, child: pid_t) {
        // The parent process may ignore SIGCHLD: then the system keeps no child's exit code.
        signal(SIGCHLD, SIG_DFL)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        let arguments = cStrings(arguments)
        let environment = cStrings(inheritedEnvironment(without: variables) + variables)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
            for text in arguments + environment { free(text) }
        }
        var child: pid_t = 0
        guard let program = arguments[0] else { return (ENOENT, 0) }
        let status = posix_spawnp(
            &child,
            program,
            &actions,
            &attributes,
            arguments,
            environment
        )
        return (status, child)
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
