import StateEngine
import StateRules
import StateServer

/// The parsed command line.
enum Request {
    case serve(Options)
    case checkConfiguration(ConfigurationCheck)
    case check(store: String)
    case salvage(store: String, to: String)
    case restore([String], to: String)
    case configurationSchema
    case help
    case version

    /// - Throws: ``StateError/Code/err``, naming the wrong argument or the first fault of the
    ///   configuration; `findings` has all of them.
    init(arguments: [String], _ findings: ConfigurationFindings) throws(StateError) {
        var given: [(name: String, value: String)] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let (name, attached) = Request.split(argument)
            if ["--help", "-h"].contains(name) {
                self = .help
                return
            }
            if name == "--config-schema" {
                self = .configurationSchema
                return
            }
            if ["--version", "-V"].contains(name) {
                self = .version
                return
            }
            if Request.flags.contains(name) {
                guard attached == nil else { throw Request.error("\(name) takes no value") }
                given.append((name, ""))
                continue
            }
            guard Options.names.contains(name) || Request.names.contains(name) else {
                throw Request.error("unknown argument '\(argument)'")
            }
            guard let value = attached ?? rest.popFirst(), !value.isEmpty else {
                throw Request.error("\(name) needs a value")
            }
            given.append((name, value))
        }
        try self.init(given, findings)
    }

    /// The options with a value that do not say how to serve.
    private static let names: Set = ["--config", "--check-config", "--as", "--to", "--restore"]
    /// The options without a value.
    private static let flags: Set = [
        "--memory", "--check", "--salvage", "--all-warnings-are-errors",
    ]

    private init(
        _ given: [(name: String, value: String)],
        _ findings: ConfigurationFindings
    ) throws(StateError) {
        func last(_ name: String) -> String? { given.last { $0.name == name }?.value }
        let options = try Request.options(given, findings)
        if let checked = last("--check-config") {
            var check = ConfigurationCheck(path: checked, user: last("--as"))
            check.refusesWarnings = last("--all-warnings-are-errors") != nil
            self = .checkConfiguration(check)
            return
        }
        let files = given.filter { $0.name == "--restore" }.map(\.value)
        guard files.isEmpty else {
            let allowed: Set = ["--restore", "--data"]
            if let other = given.first(where: { !allowed.contains($0.name) }) {
                throw Request.error("\(other.name) does not go with --restore")
            }
            guard let target = last("--data") else {
                throw Request.error("--restore needs --data NEWDIRECTORY, for the new store")
            }
            self = .restore(files, to: target)
            return
        }
        if let name = given.first(where: {
            ["--as", "--all-warnings-are-errors"].contains($0.name)
        }) {
            throw Request.error("\(name.name) needs --check-config")
        }
        let mode = given.last { ["--check", "--salvage"].contains($0.name) }?.name
        if let mode, options.isMemory {
            throw Request.error("\(mode) does not work with --memory, which has no store")
        }
        switch (mode, last("--to")) {
        case (nil, nil):
            try options.checkPlaces(findings)
            self = .serve(options)
        case ("--salvage", let target?):
            self = .salvage(store: try DataDirectory.path(options), to: target)
        case ("--salvage", nil):
            throw Request.error("--salvage needs --to NEWDIRECTORY, for the new store")
        case (_, .some): throw Request.error("--to needs --salvage")
        case (.some, nil): self = .check(store: try DataDirectory.path(options))
        }
    }

    /// The configuration that `--config` names, else the standard one; then the options.
    private static func options(
        _ given: [(name: String, value: String)],
        _ findings: ConfigurationFindings
    ) throws(StateError) -> Options {
        var options = Options()
        for (name, value) in given where name == "--config" { try options.read(value, findings) }
        let standard = try findings.waiting.during("the configuration in its usual place") {
            ConfigurationPlace.standard(for: Set(given.map(\.name)))
        }
        if let path = standard {
            try options.read(path, findings)
        }
        for (name, value) in given { try options.take(name, value) }
        return options
    }

    /// `--name=value` as its two halves.
    private static func split(_ argument: String) -> (name: String, value: String?) {
        guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else {
            return (argument, nil)
        }
        return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
    }

    static func error(_ sentence: String) -> StateError {
        StateError(.err, sentence + "; see stated --help")
    }
}
