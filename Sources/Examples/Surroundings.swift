@preconcurrency import Glibc
import StateEngine

/// An example's own directory, removed with its contents when its last reference is released.
final class Scratch: Sendable {
    let path: String

    init() throws(StateError) {
        var template = Array("/tmp/examples.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw StateError(failed: "mkdtemp") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { remove() }

    /// Removes the directory; for one that is never released.
    func remove() { _ = try? run("/bin/rm", ["-rf", path]) }

    func path(of name: String) -> String { "\(path)/\(name)" }
}

extension StateError {
    /// A system call that failed.
    init(failed call: String, _ number: Int32 = errno) {
        self.init(.storage, "\(call): \(String(cString: strerror(number)))")
    }
}

/// The text of a file, at most 64 KiB; nil if there is none.
func textOfFile(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes.prefix(count), as: UTF8.self)
}

/// The size of all files of a directory in bytes; 0 if it does not exist.
func sizeOfFiles(in path: String) -> Int {
    guard let directory = opendir(path) else { return 0 }
    defer { closedir(directory) }
    var size = 0
    while let entry = readdir(directory) {
        var facts = stat()
        let isFile =
            fstatat(dirfd(directory), &entry.pointee.d_name.0, &facts, 0) == 0
            && facts.st_mode & S_IFMT == S_IFREG
        if isFile { size += Int(facts.st_size) }
    }
    return size
}

/// Replaces a file: a reader finds the complete old or new text.
func writeFile(_ path: String, _ text: String) {
    guard let file = fopen("\(path).new", "w") else { return }
    fputs(text, file)
    fclose(file)
    rename("\(path).new", path)
}

/// Runs the `statectl` beside this program, and waits for its end.
///
/// - Returns: Its process id.
@discardableResult
func statectl(_ arguments: String...) throws(StateError) -> Int32 {
    var own = [CChar](repeating: 0, count: 4_096)
    let count = max(0, readlink("/proc/self/exe", &own, own.count))
    let program = String(decoding: own[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let directory = program.lastIndex(of: "/").map { program[...$0] } ?? ""
    return try run(directory + "statectl", arguments)
}

/// Runs a program, and waits for its end; its output is discarded.
///
/// - Returns: Its process id.
private func run(_ path: String, _ arguments: [String]) throws(StateError) -> Int32 {
    let argv = ([path] + arguments).map { strdup($0) } + [nil]
    defer { for argument in argv { free(argument) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    var (child, status): (pid_t, Int32) = (0, 0)
    let failure = posix_spawn(&child, path, &actions, nil, argv, environ)
    guard failure == 0 else { throw StateError(failed: "posix_spawn \(path)", failure) }
    waitpid(child, &status, 0)
    guard status == 0 else { throw StateError(.err, "\(path) \(arguments) ended with \(status)") }
    return child
}
