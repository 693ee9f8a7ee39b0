@preconcurrency package import Glibc
import StateEngine

/// Held from a pipe's creation until both ends are close-on-exec, and while a process is started: tests
/// run on several threads, and a process must not inherit the pipes of another.
private let starting = StateLock(())

/// A pipe whose ends no process inherits.
func makePipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    let status = starting.withLock { _ in
        let status = pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return status
    }
    guard status == 0 else { throw SystemFailure(call: "pipe", errno) }
    return (ends[0], ends[1])
}

/// Starts a program, found by PATH if its name has no `/`, with these descriptors as 0, 1, 2 and so on; the numbers of others than the first three must be larger than theirs.
package func spawn(
    _ path: String,
    _ arguments: [[UInt8]],
    _ variables: [String: String],
    descriptors: [Int32]
) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (index, descriptor) in descriptors.enumerated() {
        posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(index))
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    // A shell's background jobs ignore some: what tests start does not inherit that.
    for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] { sigaddset(&signals, number) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    let argv = cStrings([Array(path.utf8)] + arguments)
    let environment = cStrings(environment(with: variables))
    defer { for string in argv + environment { free(string) } }
    var child: pid_t = 0
    let status = starting.withLock { _ in
        posix_spawnp(&child, path, &actions, &attributes, argv, environment)
    }
    guard status == 0 else { throw SystemFailure(call: "posix_spawn \(path)", status) }
    return child
}

/// Returns true if `PATH` has the program, as ``spawn(_:_:_:descriptors:)`` looks for it.
package func isInstalled(_ program: String) -> Bool {
    let path = getenv("PATH").map { String(cString: $0) } ?? ""
    return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
}

private func environment(with variables: [String: String]) -> [[UInt8]] {
    var kept: [[UInt8]] = variables.map { Array("\($0)=\($1)".utf8) }
    var entry = environ
    while let variable = entry.pointee {
        let text = String(cString: variable)
        let name = String(text.prefix { $0 != "=" })
        if variables[name] == nil { kept.append(Array(text.utf8)) }
        entry += 1
    }
    return kept
}

private func cStrings(_ strings: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
    strings.map { strdup($0.map { CChar(bitPattern: $0) } + [0]) } + [nil]
}
