@preconcurrency import Glibc

/// The program `sqlite3`, if it is installed.
enum SQLiteShell {
    /// Puts what it can recover of a database into another one.
    ///
    /// - Returns: Its exit code; nil if it is not installed.
    static func recover(_ database: String, into target: String) -> Int32? {
        pipe(
            ["sqlite3", "-batch", database, ".recover --ignore-freelist"],
            ["sqlite3", "-batch", target]
        )
    }

    /// Runs two programs, of which the second reads what the first writes.
    ///
    /// - Returns: The exit code of the first; nil if it is not installed.
    private static func pipe(_ first: [String], _ second: [String]) -> Int32? {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        let writer = spawn(first, [null, ends[1], null])
        let reader = writer.flatMap { _ in spawn(second, [ends[0], null, null]) }
        for descriptor in ends + [null] { close(descriptor) }
        let code = writer.map(exitCode)
        if let reader { _ = exitCode(reader) }
        return code
    }

    private static func spawn(_ arguments: [String], _ descriptors: [Int32]) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (index, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(index))
        }
        var strings = arguments.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var child: pid_t = 0
        let code = posix_spawnp(&child, arguments[0], &actions, nil, &strings, environ)
        return code == 0 ? child : nil
    }

    private static func exitCode(_ child: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }
}
