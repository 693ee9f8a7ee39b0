import Glibc
import StateEngine
import StateRules

/// What the command line asks for.
enum Request {
    case serve(Options)
    /// Reads the configuration, and says whether it can be used.
    case checkConfiguration(String)
    case check(Options)
    case salvage(Options, to: String)
    case help
    case version

    /// - Throws: ``StateError/Code/err``, naming the argument that makes no sense.
    init(arguments: [String]) throws(StateError) {
        var options = try Request.options(of: arguments)
        var mode = Mode.serve
        var checked: String?
        var target: String?
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let (name, attached) = Request.split(argument)
            switch name {
            case "--help", "-h":
                self = .help
                return
            case "--version", "-V":
                self = .version
                return
            case "--memory", "--check", "--salvage":
                guard attached == nil else { throw Request.error("\(name) takes no value") }
                options.isMemory = options.isMemory || name == "--memory"
                mode = Mode(rawValue: name) ?? mode
            // Taken before the others, which count more than what stands in it.
            case "--config": _ = try Request.value(of: name, attached, &rest)
            case "--check-config": checked = try Request.value(of: name, attached, &rest)
            case "--to": target = try Request.value(of: name, attached, &rest)
            case "--socket": options.socket = try Request.value(of: name, attached, &rest)
            case "--data": options.dataDirectory = try Request.value(of: name, attached, &rest)
            case "--socket-mode":
                let text = try Request.value(of: name, attached, &rest)
                options.socketMode = try Request.mode(text)
            case let quantity where Options.quantities.contains(quantity):
                try options.set(name, to: try Request.value(of: name, attached, &rest))
            default: throw Request.error("unknown argument '\(argument)'")
            }
        }
        if let checked {
            self = .checkConfiguration(checked)
            return
        }
        self = try Request.request(mode, options, target)
    }

    /// What the configuration says that the arguments name, or the one that is there for them; else the defaults.
    private static func options(of arguments: [String]) throws(StateError) -> Options {
        var options = Options()
        var names: Set<String> = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let (name, attached) = split(argument)
            names.insert(name)
            guard name == "--config" else { continue }
            let path = try value(of: name, attached, &rest)
            options.configuration = path
            options.take(try ConfigurationFile.read(path))
        }
        if let path = ConfigurationPlace.standard(for: names) {
            options.configuration = path
            options.take(try ConfigurationFile.read(path))
        }
        return options
    }

    /// What is to be done, by the option that says so.
    private enum Mode: String {
        case serve
        case check = "--check"
        case salvage = "--salvage"
    }

    private static func request(
        _ mode: Mode,
        _ options: Options,
        _ target: String?
    ) throws(StateError) -> Request {
        if options.isMemory, mode != .serve {
            throw error("\(mode.rawValue) and --memory exclude each other")
        }
        switch (mode, target) {
        case (.serve, nil):
            try options.checkPlaces()
            return .serve(options)
        case (.check, nil): return .check(options)
        case (.salvage, let target?): return .salvage(options, to: target)
        case (.salvage, nil): throw error("--salvage needs --to DIRECTORY, for the new store")
        case (_, .some): throw error("--to goes with --salvage")
        }
    }

    /// `--name=value` as its two halves.
    private static func split(_ argument: String) -> (name: String, value: String?) {
        guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else {
            return (argument, nil)
        }
        return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
    }

    private static func value(
        of name: String,
        _ attached: String?,
        _ rest: inout ArraySlice<String>
    ) throws(StateError) -> String {
        guard let value = attached ?? rest.popFirst(), !value.isEmpty else {
            throw error("\(name) needs a value")
        }
        return value
    }

    private static func mode(_ text: String) throws(StateError) -> UInt32 {
        guard let mode = UInt32(text, radix: 8), mode <= 0o777, mode & 0o600 == 0o600 else {
            throw error("--socket-mode takes octal permission bits such as 0660, not '\(text)'")
        }
        return mode
    }

    static func error(_ sentence: String) -> StateError {
        StateError(.err, sentence + "; see stated --help")
    }
}

/// How to serve.
struct Options {
    /// Where to listen; nil for an inherited socket or the user's own place.
    var socket: String?
    /// Where the values live; nil for the user's own place.
    var dataDirectory: String?
    /// Whether the values live in memory only; the directory holds the ceiling of their revisions, then.
    var isMemory = false
    /// How much of the past is kept.
    var history = HistoryLimits()
    /// The largest value, and the other limits of the keyspace.
    var limits = Limits()
    /// Clients at once.
    var clientCount = 10_000
    /// Watches of one client.
    var watchCount = 1_000
    /// Keys that one commit or command of a client without admin rights may change.
    var stepCount = 10_000
    /// Globs of all watches and subscriptions of a user without admin rights.
    var globCount = 100
    /// Output that waits for one client, in bytes.
    var outputByteCount = 8 << 20
    /// The permission bits of a socket file that is made here.
    var socketMode: UInt32 = 0o600
    /// The group of a socket file that is made here; nil for the daemon's own.
    var socketGroup: UInt32?
    /// Input that is not parsed yet, of all clients, in bytes.
    var inputByteCount = 256 << 20
    /// One reply, in bytes.
    var replyByteCount = 256 << 20
    /// Memory of all clients together, in bytes.
    var memoryByteCount = 512 << 20
    /// How long a command may take to come, in milliseconds; 0: for ever.
    var frameMilliseconds = 60_000
    /// The longest rest after a long command, in milliseconds; 0: none.
    var restMilliseconds = 500
    /// How often everything that is stored is read, in milliseconds; 0: never.
    var checkMilliseconds = 86_400_000
    /// What is kept of the disk for deletes and compaction.
    var reserveByteCount = 10 << 20
    /// What is asked of each change.
    var rules = RuleTable([])
    /// The file that says so; nil where there is none.
    var configuration: String?
}
