import StateClient
import StateModel

extension Statectl {
    /// `list --children PREFIX/`: the names of the next level.
    static func listChildren(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        if let option = ["--keys", "--long", "--count", "--at"].first(where: invocation.has) {
            throw .usage("list: --children cannot be combined with \(option)")
        }
        let prefix = try prefix(invocation)
        var names = try invocation.connect().children(of: prefix)
        while let page = try attempt(try names.next()) {
            for name in page {
                output.write(isJSON: invocation.isJSON, ["name": .bytes(name)], orFields: [name])
            }
            try output.flushIfLarge()
        }
    }

    /// `tree [PREFIX/]`: the keys with their values, a level deeper for each `/`.
    static func tree(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard !invocation.isJSON else {
            throw .usage("tree prints no JSON; 'statectl list --json' prints the same values")
        }
        let prefix = try prefix(invocation)
        let depth = try invocation.number("--depth", atLeast: 1)
        var pages = try invocation.connect().pages(of: prefix)
        var tree = Tree(below: prefix.literal.split(separator: slash).count, depth: depth)
        while let page = try attempt(try pages.next()) {
            for entry in page { tree.write(entry.key, entry.value ?? [], &output) }
            try output.flushIfLarge()
        }
    }

    private static func prefix(_ invocation: Invocation) throws(Failure) -> Pattern {
        let pattern = try invocation.pattern()
        guard pattern.kind == .prefix else {
            let text = String(decoding: invocation.operands.first ?? [], as: UTF8.self)
            throw .usage("'\(StateError.printable(text))' is not a prefix, which ends in /")
        }
        return pattern
    }

    fileprivate static let slash = UInt8(ascii: "/")
}

/// Keys in their order, as an indented tree: each prefix once, on a line of its own before the keys
/// below it.
///
/// Keys are ordered by bytes: those below a prefix are one after the other.
private struct Tree {
    private let baseCount: Int
    private let depth: Int64?
    /// The prefixes of the last key, without those that all keys have.
    private var open: [ArraySlice<UInt8>] = []

    init(below baseCount: Int, depth: Int64?) { (self.baseCount, self.depth) = (baseCount, depth) }

    mutating func write(_ key: [UInt8], _ value: [UInt8], _ output: inout Output) {
        let names = key.split(separator: Statectl.slash, omittingEmptySubsequences: false)
            .dropFirst(baseCount)
        let prefixes = Array(names.dropLast())
        let commonCount = zip(prefixes, open).prefix { $0 == $1 }.count
        for (level, name) in prefixes.enumerated().dropFirst(commonCount) where isShown(level) {
            indent(level, &output)
            output.writeEscaped(Array(name))
            output.write("/\n")
        }
        open = prefixes
        guard let name = names.last, isShown(prefixes.count) else { return }
        indent(prefixes.count, &output)
        output.writePair(Array(name), value)
    }

    private func isShown(_ level: Int) -> Bool { depth.map { level < $0 } ?? true }

    private func indent(_ level: Int, _ output: inout Output) {
        output.write(String(repeating: "  ", count: level))
    }
}
