import StateEngine
import StateRules

/// How to serve: the configuration, and the options of the command line, which override it.
struct Options {
    var configuration = Configuration()
    /// The file that the configuration was read from; nil if there is none.
    private(set) var path: String?
    /// The folders with further files of the configuration.
    private(set) var reservedFolders: [String] = []
    /// Whether the values are in memory only; the directory then holds the reserved revision.
    private(set) var isMemory = false
    /// The directory of a daemon that served before the data directory was there; nil for none.
    private(set) var earlyDirectory: String?

    /// Applies a configuration file; `findings` gets what is wrong with it.
    mutating func read(
        _ path: String,
        accounts: AccountDirectory? = nil,
        _ findings: ConfigurationFindings
    ) throws(StateError) {
        configuration = try ConfigurationFile.read(
            path,
            over: configuration,
            accounts: accounts ?? .system(findings.waiting),
            findings
        )
        self.path = path
        reservedFolders = findings.reservedFolders
    }

    /// The options of the command line that have a value and say how to serve.
    static let names: Set<String> = [
        "--socket", "--data", "--adopt", "--socket-mode", "--history-changes", "--history-age",
        "--history-bytes", "--clients", "--watches", "--output-bytes", "--value-bytes",
    ]

    /// Applies an option of the command line; ignores one that does not say how to serve.
    ///
    /// - Throws: ``StateError/Code/err``: what the option takes, and the given value.
    mutating func take(_ name: String, _ value: String) throws(StateError) {
        switch name {
        case "--memory": isMemory = true
        case "--socket": configuration.socket.path = value
        case "--data": configuration.dataDirectory = value
        case "--adopt": earlyDirectory = value
        case "--socket-mode":
            guard let mode = Configuration.socketMode(value) else {
                throw Request.error(
                    "--socket-mode takes octal permission bits such as 0660, not '\(value)'"
                )
            }
            configuration.socket.mode = mode
        default:
            do throws(StateError) { try takeQuantity(name, value) } catch {
                throw Request.error("\(name) takes \(error.message)")
            }
        }
    }

    private mutating func takeQuantity(_ name: String, _ text: String) throws(StateError) {
        switch name {
        case "--history-changes":
            configuration.history.changeCount = try Quantity.count(text, in: 0...Int.max)
        case "--history-age": configuration.history.age = try Quantity.duration(text)
        case "--history-bytes": configuration.history.byteCount = try Quantity.byteCount(text)
        case "--clients": try takeCount(.clients, text)
        case "--watches": try takeCount(.watches, text)
        case "--output-bytes": try takeByteCount(.outputBytes, text, LimitOption.outputBytes.range)
        case "--value-bytes":
            try takeByteCount(.valueBytes, text, 1...configuration.limits.largestValueByteCount)
        default: break
        }
    }

    private mutating func takeCount(_ option: LimitOption, _ text: String) throws(StateError) {
        configuration.limits[option] = try Quantity.count(text, in: option.range)
    }

    private mutating func takeByteCount(
        _ option: LimitOption,
        _ text: String,
        _ range: ClosedRange<Int>
    ) throws(StateError) {
        let bounds = Int64(range.lowerBound)...Int64(range.upperBound)
        configuration.limits[option] = Int(try Quantity.byteCount(text, in: bounds))
    }
}
