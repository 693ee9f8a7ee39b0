import Glibc
import StateEngine
import StateWire
import Testing

struct SocketLocationTests {
    struct Machine: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var option: String?
        var environment: [String: String] = [:]
        var uid: UInt32 = 1_000
        var owners: [String: UInt32] = [:]
        var hidden: Set<String> = []
        /// Sockets that refuse connections.
        var stale: Set<String> = []
        /// The owner of the user's values.
        var pid: Int32?
        var client: String
        /// What a client is told instead of a connection.
        var refusal: [String] = []
        var server: String

        var location: SocketLocation {
            SocketLocation(
                environment: { environment[$0] },
                uid: uid,
                presence: presence,
                owner: { $0.hasSuffix("/stated/lock") ? pid : nil }
            )
        }

        func presence(_ path: String) -> SocketLocation.Presence {
            if hidden.contains(path) { return .hidden }
            return owners[path].map { .owned(by: $0) } ?? .absent
        }

        func connect(_ path: String) -> Int32 {
            if stale.contains(path) { return ECONNREFUSED }
            return presence(path) == .absent ? ENOENT : 0
        }
    }

    static let user = [
        "XDG_RUNTIME_DIR": "/run/user/1000", "XDG_STATE_HOME": "/state", "HOME": "/home/u",
    ]
    static let runtime = "/run/user/1000/stated/stated.sock"
    static let state = "/state/stated/stated.sock"
    static let system = "/run/stated/stated.sock"

    static let machines = [
        Machine(
            testDescription: "--socket wins",
            option: "/o",
            environment: ["STATED_SOCKET": "/e"],
            client: "/o",
            server: "/o"
        ),
        Machine(
            testDescription: "STATED_SOCKET is next",
            environment: user.merging(["STATED_SOCKET": "/e"]) { $1 },
            client: "/e",
            server: "/e"
        ),
        Machine(
            testDescription: "an empty STATED_SOCKET is none",
            environment: user.merging(["STATED_SOCKET": ""]) { $1 },
            owners: ["/run/user/1000": 1_000],
            client: runtime,
            server: runtime
        ),
        Machine(
            testDescription: "a user's runtime directory",
            environment: user,
            owners: ["/run/user/1000": 1_000, runtime: 1_000, system: 0],
            client: runtime,
            server: runtime
        ),
        Machine(
            testDescription: "a runtime directory of somebody else is not taken",
            environment: user,
            owners: ["/run/user/1000": 1_001, runtime: 1_001],
            client: state,
            server: state
        ),
        Machine(
            testDescription: "a client takes what exists, the daemon what is its own",
            environment: user,
            owners: ["/run/user/1000": 1_000, state: 1_000],
            client: state,
            server: runtime
        ),
        Machine(
            testDescription: "the machine's daemon is the last resort of a client",
            environment: user,
            owners: ["/run/user/1000": 1_000, system: 0],
            client: system,
            server: runtime
        ),
        Machine(
            testDescription: "a socket that may not be looked at may be there",
            environment: user,
            owners: ["/run/user/1000": 1_000],
            hidden: [system],
            client: system,
            server: runtime
        ),
        Machine(
            testDescription: "HOME stands in for XDG_STATE_HOME",
            environment: ["HOME": "/home/u"],
            client: "/home/u/.local/state/stated/stated.sock",
            server: "/home/u/.local/state/stated/stated.sock"
        ),
        Machine(
            testDescription: "from cron the directory of the session is known by its name",
            environment: cron,
            owners: own,
            client: runtime,
            server: runtime
        ),
        Machine(
            testDescription: "without HOME, too",
            owners: own,
            client: runtime,
            server: runtime
        ),
        Machine(
            testDescription: "a directory of that name that is somebody else's is not taken",
            environment: cron,
            owners: ["/run/user/1000": 1_001, runtime: 1_001],
            client: home,
            server: home
        ),
        Machine(
            testDescription: "from cron, before a session has a directory",
            environment: cron,
            owners: [home: 1_000, system: 0],
            client: home,
            server: home
        ),
        Machine(
            testDescription: "from cron, without a daemon of the user",
            environment: cron,
            owners: session.merging([system: 0]) { $1 },
            client: system,
            server: runtime
        ),
        Machine(
            testDescription: "su without - leaves the runtime directory of another user",
            environment: ["XDG_RUNTIME_DIR": "/run/user/1001", "HOME": "/home/u"],
            owners: own.merging(["/run/user/1001": 1_001]) { $1 },
            client: runtime,
            server: runtime
        ),
        Machine(
            testDescription: "su without - leaves the state directory of another user",
            environment: ["XDG_STATE_HOME": "/home/other", "HOME": "/home/u"],
            owners: ["/home/other/stated/stated.sock": 1_001, system: 0],
            client: system,
            server: "/home/other/stated/stated.sock"
        ),
        Machine(
            testDescription: "sudo leaves the runtime directory of the user",
            environment: ["XDG_RUNTIME_DIR": "/run/user/1000", "HOME": "/root"],
            uid: 0,
            owners: own,
            client: system,
            server: system
        ),
        Machine(
            testDescription: "relative directories are ignored",
            environment: ["XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "HOME": "/h"],
            owners: ["run": 1_000],
            client: "/h/.local/state/stated/stated.sock",
            server: "/h/.local/state/stated/stated.sock"
        ),
        Machine(
            testDescription: "nothing but the last resort",
            client: system,
            server: system
        ),
        Machine(
            testDescription: "root has the machine's",
            environment: ["XDG_RUNTIME_DIR": "/run/user/0", "HOME": "/root"],
            uid: 0,
            owners: ["/run/user/0": 0, "/run/user/0/stated/stated.sock": 0],
            client: system,
            server: system
        ),
    ]

    @Test(arguments: machines)
    func `the socket is where the contract has it`(machine: Machine) throws {
        let location = machine.location
        let choice = try location.clientChoice(option: machine.option)
        #expect(choice.path == machine.client)
        #expect(try location.serverPath(option: machine.option) == machine.server)
    }

    static let cron = ["HOME": "/home/u"]
    static let home = "/home/u/.local/state/stated/stated.sock"
    static let session: [String: UInt32] = ["/run/user/1000": 1_000]
    static let (own, ours): ([String: UInt32], [String: UInt32]) = (
        session.merging([runtime: 1_000, system: 0]) { $1 }, [home: 1_000, system: 0]
    )

    static let connections = [
        Machine(
            testDescription: "a stale socket, and another daemon of the user",
            environment: user,
            owners: own.merging([state: 1_000]) { $1 },
            stale: [runtime],
            client: state,
            server: runtime
        ),
        Machine(
            testDescription: "a stale socket, and only the machine's daemon",
            environment: user,
            owners: own,
            stale: [runtime],
            client: runtime,
            refusal: [runtime, system, "--system"],
            server: runtime
        ),
        Machine(
            testDescription: "two stale sockets, and the machine's daemon",
            environment: user,
            owners: own.merging([state: 1_000]) { $1 },
            stale: [runtime, state],
            client: state,
            refusal: [state, system, "--system"],
            server: runtime
        ),
        Machine(
            testDescription: "a stale socket and no other daemon",
            environment: user,
            owners: session.merging([runtime: 1_000]) { $1 },
            stale: [runtime],
            client: runtime,
            server: runtime
        ),
        Machine(
            testDescription: "a stale socket that is named is the only choice",
            environment: user.merging(["STATED_SOCKET": home]) { $1 },
            owners: own.merging(ours) { $1 },
            stale: [home],
            client: home,
            server: home
        ),
        Machine(
            testDescription: "a daemon of the user whose socket is not found",
            environment: cron,
            owners: [system: 0],
            pid: 4_711,
            client: system,
            refusal: ["process 4711", "/home/u/.local/state/stated", system, "--system"],
            server: home
        ),
        Machine(
            testDescription: "a daemon of the user that has not written its number",
            environment: cron,
            owners: [system: 0],
            pid: 0,
            client: system,
            refusal: ["a daemon of this user serves"],
            server: home
        ),
        Machine(
            testDescription: "a daemon of the user whose socket is found",
            environment: cron,
            owners: ours,
            pid: 4_711,
            client: home,
            server: home
        ),
        Machine(
            testDescription: "root never has the daemon of a user",
            environment: cron,
            uid: 0,
            owners: [system: 0],
            pid: 4_711,
            client: system,
            server: system
        ),
        Machine(
            testDescription: "the machine's daemon is named",
            option: system,
            environment: cron,
            owners: [system: 0],
            pid: 4_711,
            client: system,
            server: system
        ),
    ]

    @Test(arguments: connections)
    func `a client changes no other store than its user expects`(machine: Machine) throws {
        let location = machine.location
        var choice = try location.clientChoice(option: machine.option)
        let result = Result { () throws(StateError) in
            try location.connect(to: &choice, machine.connect)
        }
        #expect(choice.path == machine.client)
        #expect(try location.serverPath(option: machine.option) == machine.server)
        switch result {
        case .success(let code):
            #expect(machine.refusal.isEmpty)
            #expect((code == 0) == !machine.stale.contains(machine.client))
        case .failure(let error):
            #expect(error.code == .unreachable && !machine.refusal.isEmpty, "\(error)")
            for part in machine.refusal { #expect(error.message.contains(part), "\(error)") }
        }
    }

    @Test func `a client that was connected once stays with its daemon`() throws {
        let machine = Machine(
            testDescription: "",
            environment: Self.user,
            owners: Self.own.merging([Self.state: 1_000]) { $1 },
            client: Self.runtime,
            server: Self.runtime
        )
        var choice = try machine.location.clientChoice(option: nil)
        #expect(try machine.location.connect(to: &choice) { _ in 0 } == 0)
        #expect(try machine.location.connect(to: &choice) { _ in ECONNREFUSED } == ECONNREFUSED)
        #expect(choice.path == Self.runtime)
    }

    @Test func `--user and --system name a daemon, whatever the environment has`() throws {
        let environment = Self.user.merging(["STATED_SOCKET": "/e"]) { $1 }
        let owners: [String: UInt32] = ["/run/user/1000": 1_000]
        func location(_ present: [String: UInt32], uid: UInt32 = 1_000) -> SocketLocation {
            SocketLocation(
                environment: { environment[$0] },
                uid: uid,
                presence: { path in
                    owners.merging(present) { $1 }[path].map { .owned(by: $0) } ?? .absent
                }
            )
        }
        #expect(try location([:]).clientChoice(of: .system).path == Self.system)
        #expect(try location([Self.system: 0]).clientChoice(of: .user).path == Self.runtime)
        #expect(try location([Self.state: 1_000]).clientChoice(of: .user).path == Self.state)
        #expect(try location([:], uid: 0).clientChoice(of: .user).path == Self.state)
        #expect(throws: StateError.self) { try nowhere.clientChoice(of: .user) }
    }

    private let nowhere = SocketLocation(
        environment: { _ in nil },
        uid: 0,
        presence: { _ in .absent }
    )

    @Test func `a path of 107 bytes is taken and one of 108 is refused by name`() throws {
        func path(_ count: Int) throws(StateError) -> String {
            try nowhere.serverPath(option: "/" + String(repeating: "x", count: count - 1))
        }
        #expect(try path(107).utf8.count == 107)
        let error = #expect(throws: StateError.self) { try path(108) }
        #expect(error?.message.contains("/" + String(repeating: "x", count: 107)) == true)
        #expect(error?.message.contains("108") == true)
    }

    @Test func `an empty path is refused`() {
        #expect(throws: StateError.self) { try nowhere.clientChoice(option: "") }
    }
}
