import Glibc
import StateClient
import StateEngine
import StateModel
import StateTestSupport
import Testing

/// `stated --restore` beside other processes: what they own stays.
struct RestoreTests {
    private let daemon: Daemon
    private var directory: TemporaryDirectory { daemon.directory }
    private let stated = builtProgram("stated")

    init() throws {
        daemon = try Daemon()
        let client = try daemon.connect()
        for number in 0..<20 { try client.set(Array("\(number)".utf8), for: Key("k/\(number)")) }
        let made = try Statectl.run(daemon, "backup", directory.path(of: "b"))
        try #require(made.exitCode == 0, "\(made)")
    }

    private func path(_ name: String) -> String { directory.path(of: name) }

    /// Begins a restore from a pipe, and returns once it reads from that.
    private func beginRestore(to target: String) throws -> (restore: Program, pipe: Int32) {
        let fifo = path("fifo")
        try #require(mkfifo(fifo, 0o600) == 0)
        let program = try Program([stated, "--restore", fifo, "--data", path(target)])
        let pipe = open(fifo, O_WRONLY | O_CLOEXEC)
        try #require(pipe >= 0)
        return (program, pipe)
    }

    private func send(_ bytes: [UInt8], to pipe: Int32) {
        #expect(Glibc.write(pipe, bytes, bytes.count) == bytes.count)
        close(pipe)
    }

    /// The database of a store that a daemon made and left.
    private func makeStore(_ name: String) throws -> [UInt8] {
        let daemon = try Program([stated, "--socket", path("other.socket"), "--data", path(name)])
        try daemon.waitForErrors(containing: " serves ")
        daemon.send(SIGTERM)
        #expect(try daemon.end() == 0)
        return try readFile(path(name + "/stated.db"))
    }

    @Test func `while a backup is restored, no daemon begins a store there`() throws {
        let (restore, pipe) = try beginRestore(to: "new")
        let other = try Program([stated, "--socket", path("other.socket"), "--data", path("new")])
        let code = try other.end()
        #expect(code == 3 && other.errors.contains("is owned by process"), "\(other.errors)")
        send(try readFile(path("b")), to: pipe)
        #expect(try restore.end() == 0, "\(restore.errors)")
        let check = try runCommand(stated, ["--check", "--data", path("new")])
        #expect(check.exitCode == 0, "\(check)")
    }

    @Test func `a restore that fails removes nothing that others put there meanwhile`() throws {
        let database = try makeStore("other")
        let (restore, pipe) = try beginRestore(to: "new")
        _ = mkdir(path("new"), 0o700)
        try write(database, to: path("new/stated.db"))
        try write([1], to: path("new/notes"))
        send(try readFile(path("b")), to: pipe)
        #expect(try restore.end() == 5, "\(restore.errors)")
        #expect(try readFile(path("new/stated.db")) == database)
        #expect(try readFile(path("new/notes")) == [1])
        #expect(fileStatus(path("new/stated.db.salvage")) == nil)
    }

    @Test func `a directory that took the place of the new one is left alone`() throws {
        let (restore, pipe) = try beginRestore(to: "new")
        _ = rename(path("new"), path("moved"))
        try #require(mkdir(path("new"), 0o700) == 0)
        let names = ["stated.db", "stated.db-wal", "lock"]
        for name in names { try write([7], to: path("new/" + name)) }
        send(try readFile(path("b")), to: pipe)
        #expect(try restore.end() == 5, "\(restore.errors)")
        for name in names { #expect(try readFile(path("new/" + name)) == [7]) }
        #expect(fileStatus(path("moved")) == nil || isEmpty(path("moved")))
    }

    @Test(arguments: [SIGHUP, SIGINT, SIGTERM])
    func `a restore that a signal ends leaves nothing`(signal: Int32) throws {
        let fifo = path("fifo")
        try #require(mkfifo(fifo, 0o600) == 0)
        let words = ["--restore", fifo, "--data", path("new")]
        let restore = try RunningCommand(stated, words.map { Array($0.utf8) })
        let pipe = open(fifo, O_WRONLY | O_CLOEXEC)
        #expect(fileStatus(path("new/stated.db.salvage.new")) != nil)
        restore.signal(signal)
        #expect(restore.wait() == 128 + signal)
        #expect(fileStatus(path("new")) == nil)
        close(pipe)
    }

    @Test func `a daemon does not begin an empty store where a restore was broken off`() throws {
        let (restore, pipe) = try beginRestore(to: "new")
        restore.send(SIGKILL)
        try restore.end()
        close(pipe)
        let daemon = try Program([stated, "--socket", path("other.socket"), "--data", path("new")])
        #expect(try daemon.end() == 5)
        #expect(daemon.errors.contains("was broken off: repeat that into a new directory"))
        #expect(fileStatus(path("new/stated.db")) == nil)
    }

    @Test(arguments: ["stated.db.salvage", "stated.db.salvage.new"])
    func `a daemon does not begin an empty store beside what a restore left`(name: String) throws {
        try #require(mkdir(path("new"), 0o700) == 0)
        try write([], to: path("new/\(name)"))
        let daemon = try Program([stated, "--socket", path("other.socket"), "--data", path("new")])
        #expect(try daemon.end() == 5)
        #expect(daemon.errors.contains("\(name) is left of a restore"))
        #expect(fileStatus(path("new/stated.db")) == nil)
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a backup that a signal ends leaves the old file and no other`(signal: Int32) throws {
        let client = try daemon.connect()
        for number in 0..<64 {
            try client.set([UInt8](repeating: 7, count: 1 << 20), for: Key("big/\(number)"))
        }
        let before = try readFile(path("b"))
        let words = ["--socket", daemon.socketPath, "backup", path("b")]
        let backup = try RunningCommand(builtProgram("statectl"), words.map { Array($0.utf8) })
        let draft = path("b.\(backup.pid).new")
        let hasBegun = eventually { fileStatus(draft) != nil }
        try #require(hasBegun)
        // From now on it waits for the next piece.
        kill(daemon.pid, SIGSTOP)
        defer { kill(daemon.pid, SIGCONT) }
        try #require(fileStatus(draft) != nil)
        backup.signal(signal)
        #expect(backup.wait() == 128 + signal)
        #expect(fileStatus(draft) == nil)
        #expect(try readFile(path("b")) == before)
    }

    private func isEmpty(_ path: String) -> Bool {
        guard let entries = opendir(path) else { return false }
        defer { closedir(entries) }
        var count = 0
        while readdir(entries) != nil { count += 1 }
        // Itself and its parent.
        return count == 2
    }

    @Test(arguments: ["directory", "link", "file"])
    func `a target that exists is refused and left alone`(kind: String) throws {
        let target = path("new")
        let result =
            switch kind {
            case "directory": mkdir(target, 0o700)
            case "link": symlink(path("nowhere"), target)
            default: mknod(target, S_IFREG | 0o600, 0)
            }
        try #require(result == 0)
        let before = try #require(fileStatus(target))
        let refused = try runCommand(stated, ["--restore", path("b"), "--data", target])
        #expect(refused.exitCode == 5 && refused.errorText.contains("new exists"), "\(refused)")
        #expect(fileStatus(target)?.st_ino == before.st_ino)
        #expect(fileStatus(path("nowhere")) == nil)
    }
}
