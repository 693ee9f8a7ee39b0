/// `--name value` pairs, flags, and what follows `--`.
struct Options {
    private var values: [String: String] = [:]
    private var flags: Set<String> = []
    /// What follows `--`.
    private(set) var rest: [String] = []

    /// Parses the arguments after the command; the names in `known` have no value.
    init(_ arguments: ArraySlice<String>, flags known: Set<String> = []) throws(BenchError) {
        var remaining = arguments
        while let argument = remaining.popFirst() {
            if argument == "--" {
                rest = Array(remaining)
                return
            }
            guard argument.hasPrefix("--") else {
                throw .usage("'\(argument)' is not an option")
            }
            let name = String(argument.dropFirst(2))
            if known.contains(name) {
                flags.insert(name)
            } else if let value = remaining.popFirst() {
                values[name] = value
            } else {
                throw .usage("--\(name) needs a value")
            }
        }
    }

    func has(_ flag: String) -> Bool { flags.contains(flag) }

    func text(_ name: String) throws(BenchError) -> String {
        guard let value = values[name] else { throw .usage("--\(name) is missing") }
        return value
    }

    func text(_ name: String, standard: String) -> String { values[name] ?? standard }

    /// The option, or `standard` if it is missing; at least `least`.
    func number(_ name: String, standard: Int, least: Int = 1) throws(BenchError) -> Int {
        guard let text = values[name] else { return standard }
        guard let number = Int(text), number >= least else {
            throw .usage("--\(name) expects a number from \(least), not '\(text)'")
        }
        return number
    }
}
