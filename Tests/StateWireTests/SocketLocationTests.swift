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
        var client: String
        var server: String

        func presence(_ path: String) -> SocketLocation.Presence {
            if hidden.contains(path) { return .hidden }
            return owners[path].map { .owned(by: $0) } ?? .absent
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
        let location = SocketLocation(
            environment: { machine.environment[$0] },
            uid: machine.uid,
            presence: machine.presence
        )
        #expect(try location.clientPath(option: machine.option) == machine.client)
        #expect(try location.serverPath(option: machine.option) == machine.server)
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
        #expect(try location([:]).clientPath(of: .system) == Self.system)
        #expect(try location([Self.system: 0]).clientPath(of: .user) == Self.runtime)
        #expect(try location([Self.state: 1_000]).clientPath(of: .user) == Self.state)
        #expect(try location([:], uid: 0).clientPath(of: .user) == Self.state)
        #expect(throws: StateError.self) { try nowhere.clientPath(of: .user) }
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
        #expect(throws: StateError.self) { try nowhere.clientPath(option: "") }
    }
}
