import Glibc
import StateTestSupport
import Testing

/// A user with a daemon, on a machine that has one, too: which of them a program reaches.
///
/// The machine is a mount namespace with a `/run` of its own.
@Suite(
    .enabled(
        if: TestUser.areThere,
        "only root can run the daemons of two users: scripts/test makes them"
    )
)
struct DaemonChoiceTests {
    private let scratch: TemporaryDirectory
    private let user: TestUser
    /// What holds the namespace.
    private let machine: RunningCommand

    private var home: String { scratch.path(of: "home") }
    private var session: String { "/run/user/\(user.uid)" }
    private var ownSocket: String { session + "/stated/stated.sock" }
    private let systemSocket = "/run/stated/stated.sock"
    private var login: [String: String] { ["HOME": home, "XDG_RUNTIME_DIR": session] }
    private var cron: [String: String] { ["HOME": home] }

    init() throws {
        scratch = try TemporaryDirectory()
        user = try #require(TestUser(TestUser.names[0]))
        chmod(scratch.path, 0o755)
        // The user may not be let in where the programs are.
        let programs = ["stated", "statectl", "StateTestProgram"].map(builtProgram)
        #expect(try runCommand("cp", programs + [scratch.path]).exitCode == 0)
        let line = """
            mount -t tmpfs -o mode=755 none /run
            mkdir -p /run/stated \(scratch.path)/home \(scratch.path)/private /run/user/\(user.uid)
            cd \(scratch.path)
            chown \(user.uid):\(user.gid) home private /run/user/\(user.uid)
            echo ready
            exec cat
            """
        machine = try RunningCommand("unshare", ["-m", "sh", "-ec", line].map { Array($0.utf8) })
        #expect(try machine.nextLine() == "ready")
    }

    /// A program of the user, with all that it has of an environment.
    private func words(_ environment: [String: String], _ words: [String]) -> [String] {
        let variables = environment.map { "\($0)=\($1)" }
        return [
            "-m", "-t", "\(machine.pid)", "setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)",
            "--clear-groups", "env", "-i",
        ] + variables + [scratch.path(of: words[0])] + words.dropFirst()
    }

    private func start(
        _ environment: [String: String],
        _ program: String...
    ) throws -> RunningCommand {
        try RunningCommand("nsenter", words(environment, program).map { Array($0.utf8) })
    }

    private func statectl(
        _ environment: [String: String],
        _ arguments: String...
    ) throws -> CommandResult {
        try runCommand("nsenter", words(environment, ["statectl"] + arguments))
    }

    private func get(_ environment: [String: String], _ arguments: String...) throws -> String {
        let result = try runCommand("nsenter", words(environment, ["statectl", "get"] + arguments))
        return result.exitCode == 0 ? result.text : "exit code \(result.exitCode)"
    }

    private func ownDaemon(_ environment: [String: String]) throws -> Program {
        let daemon = try Program(["nsenter"] + words(environment, ["stated"]))
        try daemon.waitForErrors(containing: " serves ")
        return daemon
    }

    private func systemDaemon() throws -> Program {
        let daemon = try Program([
            "nsenter", "-m", "-t", "\(machine.pid)", scratch.path(of: "stated"), "--data",
            scratch.path(of: "machine"), "--socket-mode", "0666",
        ])
        try daemon.waitForErrors(containing: " serves \(systemSocket)")
        return daemon
    }

    /// Why a client of this environment takes the socket that it takes.
    private func choice(_ environment: [String: String]) throws -> String {
        let status = try statectl(environment, "status", "--json").text
        let field = #""client_socket_choice":""#
        let start = try #require(status.firstRange(of: field), "\(status)").upperBound
        return String(status[start...].prefix { $0 != "\"" })
    }

    // MARK: cron

    @Test func `a crontab and a login shell of a user change the same store`() throws {
        let daemons = (try systemDaemon(), try ownDaemon(login))
        #expect(try statectl(login, "set", "k", "login").exitCode == 0)
        #expect(try get(cron, "k") == "login\n")
        #expect(try get([:], "k") == "login\n")
        #expect(try get(cron, "--user", "k") == "login\n")
        #expect(try statectl(cron, "set", "k", "cron").exitCode == 0)
        #expect(try get(login, "k") == "cron\n")
        #expect(try get(cron, "--system", "k") == "exit code 1")
        #expect(try choice(login) == "user: $XDG_RUNTIME_DIR")
        #expect(
            try choice(cron)
                == "user: \(session), as $XDG_RUNTIME_DIR names no directory of this user"
        )
        let status = try statectl(cron, "status").text.split(separator: "\n").map(String.init)
        #expect(status.contains { $0.hasPrefix("client_socket:") && $0.hasSuffix(" \(ownSocket)") })
        withExtendedLifetime(daemons) {}
    }

    @Test func `a daemon that a crontab started is that of a login shell`() throws {
        let daemons = (try systemDaemon(), try ownDaemon(cron))
        #expect(daemons.1.errors.contains(" serves \(ownSocket)"))
        #expect(try statectl(cron, "set", "k", "cron").exitCode == 0)
        #expect(try get(login, "k") == "cron\n")
    }

    @Test func `from a crontab, a daemon that is not found does not give way to the machine's`()
        throws
    {
        let system = try systemDaemon()
        let own = try ownDaemon(["HOME": home, "XDG_RUNTIME_DIR": scratch.path(of: "private")])
        let refused = try statectl(cron, "set", "k", "cron")
        #expect(refused.exitCode == 3)
        for part in ["process \(own.pid)", home + "/.local/state/stated", systemSocket, "--system"]
        {
            #expect(refused.errorText.contains(part), "\(refused)")
        }
        #expect(try get(cron, "--system", "k") == "exit code 1")
        own.send(SIGTERM)
        #expect(try own.end() == 0)
        #expect(try statectl(cron, "set", "k", "cron").exitCode == 0)
        #expect(try get(cron, "--system", "k") == "cron\n")
        #expect(try choice(cron) == "machine: no socket of this user exists")
        withExtendedLifetime(system) {}
    }

    // MARK: A daemon that ended

    @Test func `the socket of a killed daemon does not give way to the machine's, and says so`()
        throws
    {
        let (system, own) = (try systemDaemon(), try ownDaemon(login))
        #expect(try statectl(login, "set", "k", "login").exitCode == 0)
        own.send(SIGKILL)
        #expect(try own.end() == 137)
        for environment in [login, cron] {
            let refused = try statectl(environment, "set", "k", "2")
            #expect(refused.exitCode == 3)
            for part in [ownSocket, systemSocket, "--system"] {
                #expect(refused.errorText.contains(part), "\(refused)")
            }
        }
        #expect(try get(login, "--system", "k") == "exit code 1")
        let library = try start(login, "StateTestProgram", "default", "k")
        #expect(try library.nextLine().contains(systemSocket))
        // In the state directory there may be another one of the same user.
        let other = try ownDaemon(["HOME": home, "STATED_SOCKET": stateSocket])
        #expect(try get(login, "k") == "login\n")
        other.send(SIGTERM)
        #expect(try other.end() == 0)
        let again = try ownDaemon(login)
        #expect(try get(cron, "k") == "login\n")
        withExtendedLifetime((system, again)) {}
    }

    private var stateSocket: String { home + "/.local/state/stated/stated.sock" }

    @Test func `a watch and a container do not move to the machine's daemon when their own stops`()
        throws
    {
        let (system, own) = (try systemDaemon(), try ownDaemon(login))
        #expect(try statectl(login, "set", "k", "first").exitCode == 0)
        let watch = try start(login, "statectl", "watch", "k", "--from", "0")
        #expect(try watch.nextLine().hasSuffix("\tfirst"))
        let container = try start(login, "StateTestProgram", "default", "n")
        #expect(try container.nextLine() == "ok")
        own.send(SIGTERM)
        #expect(try own.end() == 0)
        #expect(try container.nextLine().contains(ownSocket))
        // Whoever begins now means the machine's.
        #expect(try statectl(login, "set", "k", "machine").exitCode == 0)
        #expect(try get(login, "--system", "k") == "machine\n")
        let again = try ownDaemon(login)
        #expect(try statectl(login, "set", "k", "own").exitCode == 0)
        #expect(try watch.nextLine().hasSuffix("\town"))
        while try container.nextLine() != "ok" {}
        #expect(try get(login, "--system", "n") == "exit code 1")
        withExtendedLifetime((system, again)) {}
    }
}
