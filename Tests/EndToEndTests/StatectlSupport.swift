import StateEngine
import StateTestSupport

/// `statectl` as it was built.
enum Statectl {
    /// Runs it against a daemon to its end.
    static func run(
        _ daemon: Daemon,
        _ arguments: String...,
        input: String = ""
    ) throws -> CommandResult {
        try run(["--socket", daemon.socketPath] + arguments, input: Array(input.utf8))
    }

    /// Runs it with arguments of any bytes against a daemon to its end.
    static func run(
        _ daemon: Daemon,
        bytes arguments: [[UInt8]],
        input: [UInt8] = []
    ) throws -> CommandResult {
        let socket = ["--socket", daemon.socketPath].map { Array($0.utf8) }
        return try RunningCommand(builtProgram("statectl"), socket + arguments).finish(input: input)
    }

    /// Runs it to its end.
    static func run(
        _ arguments: [String],
        input: [UInt8] = [],
        environment: [String: String] = [:]
    ) throws -> CommandResult {
        try runCommand(
            builtProgram("statectl"),
            arguments,
            input: input,
            environment: environment
        )
    }

    /// Starts it against a daemon.
    static func start(_ daemon: Daemon, _ arguments: String...) throws -> RunningCommand {
        let arguments = ["--socket", daemon.socketPath] + arguments
        return try RunningCommand(builtProgram("statectl"), arguments.map { Array($0.utf8) })
    }

    /// Starts it on a terminal: what it prints there is the output of the result.
    static func runOnTerminal(_ daemon: Daemon, _ words: String) throws -> CommandResult {
        let command = "\(builtProgram("statectl")) --socket \(daemon.socketPath) \(words)"
        return try runCommand("script", ["-qec", command, "/dev/null"])
    }
}
