import Glibc
import StateContainers
import StateSQLite
import StateTestSupport
import Testing

struct StoredStateTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func program(_ arguments: String...) throws -> RunningCommand {
        try RunningCommand(builtProgram("StateTestProgram"), arguments.map { Array($0.utf8) })
    }

    @Test func `a value outlives the process, in a database and in a directory`() throws {
        do {
            let stored = try SQLiteState(
                0.5,
                key: "audio/volume",
                in: SQLiteDatabase(path: path("app.db"))
            )
            let file = try FileState(
                "blue",
                key: "ui/theme",
                in: StateDirectory(path: path("conf"))
            )
            #expect(stored.value == 0.5)
            try stored ~> 0.7
            try file ~> "green"
        }
        let stored = try SQLiteState(
            0.5,
            key: "audio/volume",
            in: SQLiteDatabase(path: path("app.db"))
        )
        let file = try FileState("blue", key: "ui/theme", in: StateDirectory(path: path("conf")))
        #expect(stored.value == 0.7)
        #expect(stored.origin == .stored)
        #expect(file.value == "green")
        #expect(try runCommand("cat", [path("conf/ui/theme")]).text == "green")
    }

    @Test func `a nil in an Optional outlives its container, in memory, a file and a database`()
        throws
    {
        func check(_ open: () throws -> PersistentState<Int??>) throws {
            for value: Int?? in [.some(nil), 5, .some(nil)] {
                try open() ~> value
                let state = try open()
                #expect(state.value == value)
                #expect(state.origin == .stored)
            }
        }
        let memory = try LocalKeyspace(backing: MemoryBacking())
        try check { try PersistentState(nil, key: "n", in: memory) }
        try check { try FileState(nil, key: "n", in: StateDirectory(path: path("conf"))) }
        try check { try SQLiteState(nil, key: "n", in: SQLiteDatabase(path: path("nested.db"))) }
    }

    @Test func `a program without scopes keeps no initial value, and says so in a scope`() throws {
        let plain = try runCommand(builtProgram("StateTestProgram"), ["change"])
        #expect(plain.text.hasPrefix("in place\n"))
        #expect(plain.exitCode > 128)
        #expect(plain.errorText.contains("'large' was changed before the first StateScope"))
        let scoped = try runCommand(builtProgram("StateTestProgram"), ["change", "scopes"])
        #expect(scoped.text == "copied\n0\n")
    }

    @Test func `a database that another process has open is locked, with its pid`() throws {
        let writer = try program("transfer", "database", path("app.db"))
        _ = try writer.nextLine()
        let error = #expect(throws: StateError.self) { try SQLiteDatabase(path: path("app.db")) }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("\(writer.pid)") ?? false)
        writer.signal(SIGKILL)
        _ = writer.wait()
    }

    @Test func `Atomic: a transaction is whole in the database after a kill at any moment`() throws
    {
        var random = SplitMix(seed: 11)
        var told = 0
        for _ in 0..<Extent.named("STATED_KILLS", short: 15) {
            let writer = try program("transfer", "database", path("app.db"))
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                _ = try writer.nextLine()
                told += 1
            }
            writer.signal(SIGKILL)
            _ = writer.wait()
            let database = try SQLiteDatabase(path: path("app.db"))
            let accounts = try ["a", "b", "c"].map {
                try SQLiteState(0, key: Key("account/\($0)"), in: database)
            }
            let sum = accounts.reduce(0) { $0 + $1.value }
            #expect(sum == 0, "\(accounts.map(\.value))")
            #expect(accounts[0].value == accounts[1].value)
            #expect(accounts[0].value >= told)
            told = accounts[0].value
        }
    }

    @Test func `Atomic: a listener on three containers never sees a mix`() throws {
        let database = try SQLiteDatabase(path: path("app.db"))
        let accounts = try ["a", "b", "c"].map {
            try SQLiteState(0, key: Key("account/\($0)"), in: database)
        }
        let told = Observed((count: 0, mixes: 0))
        let observations = accounts.map { account in
            account.observe(initial: false) { _ in
                let sum = try? withTransaction { tx in accounts.reduce(0) { $0 + tx[$1] } }
                told.update { $0 = ($0.count + 1, $0.mixes + (sum == 0 ? 0 : 1)) }
            }
        }
        onThreads(4) { thread in
            for _ in 0..<100 {
                try? withTransaction { tx in
                    tx[accounts[thread % 3]] += 2
                    tx[accounts[(thread + 1) % 3]] -= 1
                    tx[accounts[(thread + 2) % 3]] -= 1
                }
            }
        }
        #expect(told.wait { $0.count > 3 })
        #expect(told.current.mixes == 0)
        #expect(accounts.reduce(0) { $0 + $1.value } == 0)
        withExtendedLifetime(observations) {}
    }

    @Test func `a file is whole after a kill at any moment, and keeps its mode`() throws {
        mkdir(path("conf"), 0o700)
        try directory.write(String(repeating: "0", count: 100_000), to: "conf/big")
        chmod(path("conf/big"), 0o640)
        var random = SplitMix(seed: 12)
        for _ in 0..<Extent.named("STATED_KILLS", short: 15) {
            let writer = try program("rewrite", path("conf"), "big")
            for _ in 0..<Int.random(in: 1...10, using: &random) { _ = try writer.nextLine() }
            writer.signal(SIGKILL)
            _ = writer.wait()
            let text = try runCommand("cat", [path("conf/big")]).text
            #expect(text.utf8.count == 100_000)
            #expect(Set(text.utf8).count == 1, "a file of two values")
            let state = try FileState("", key: "big", in: StateDirectory(path: path("conf")))
            #expect(state.value == text)
            #expect(try runCommand("stat", ["-c", "%a", path("conf/big")]).text == "640\n")
        }
    }

    @Test func `a file that is edited, replaced or removed is seen`() throws {
        let state = try FileState("blue", key: "ui/theme", in: StateDirectory(path: path("conf")))
        try state ~> "green"
        chmod(path("conf/ui/theme"), 0o600)
        _ = try runCommand("sed", ["-i", "s/green/red/", path("conf/ui/theme")])
        #expect(state.waits { $0 == "red" })
        try directory.write("white", to: "new")
        _ = try runCommand("mv", [path("new"), path("conf/ui/theme")])
        #expect(state.waits { $0 == "white" })
        try state ~> "black"
        #expect(try runCommand("stat", ["-c", "%a", path("conf/ui/theme")]).text == "600\n")
        _ = try runCommand("rm", [path("conf/ui/theme")])
        #expect(state.waits { $0 == "blue" })
        #expect(state.origin == .defaulted)
    }

    private func path(_ name: String) -> String { directory.path(of: name) }
}
