/// A regular expression whose search takes time proportional to the text, whatever the pattern.
///
/// It follows all possible positions of a match at once (Thompson's simulation), so it never
/// backtracks: `(a*)*b` costs no more than its size for each character. Swift's `Regex` backtracks,
/// so a malicious pair of pattern and text could block a writer for hours.
package struct RegularExpression: Hashable, Sendable {
    /// The pattern as it was written.
    package let pattern: String
    private let program: [Instruction]

    /// The largest number of instructions of a pattern; `x{1000}` has 1,000.
    static let instructionLimit = 10_000
    /// The largest number of steps for one value, about 40 ms: nobody else is served meanwhile.
    ///
    /// A usual pattern takes a few steps for each code point; 256 KiB under `(a?){1000}a{1000}`
    /// would take 8 s, in which the daemon serves nobody.
    package static let stepLimit = 2_000_000

    private enum Instruction: Sendable {
        case scalars(ScalarSet)
        case assertion(RegexAssertion)
        /// Continues at both places.
        case split(Int, Int)
        case jump(Int)
        case match
    }

    /// Reads a pattern in the syntax of ECMA 262, without back-references and look-around.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the problem and its place; also if the pattern
    ///   compiles to more than 10,000 instructions.
    package init(_ pattern: String) throws(StateError) {
        self.pattern = pattern
        do {
            var parser = RegexParser(pattern)
            var compiler = Compiler()
            try compiler.append(try parser.parse())
            program = compiler.program + [.match]
        } catch {
            let shown = Array(pattern.utf8).withUnsafeBytes { StateError.quoted($0) }
            throw StateError(.err, "pattern \(shown): \(error.message) at \(error.offset)")
        }
    }

    /// Whether `text` has the syntax of ECMA 262, also with what cannot be searched for here.
    ///
    /// - Complexity: O(*n*)
    package static func isExpression(_ text: String) -> Bool {
        var parser = RegexParser(text, isSyntaxOnly: true)
        do throws(RegexParser.Fault) {
            _ = try parser.parse()
            return true
        } catch { return false }
    }

    /// Whether a part of `text` matches; `^` and `$` are its beginning and its end.
    ///
    /// - Parameters:
    ///   - text: The text to search.
    ///   - steps: The number of steps that it may take; reduced by those that it took.
    /// - Returns: nil if the steps are used up before the result is known.
    /// - Complexity: O(*n* · *m*) for *n* code points and *m* instructions; memory for *m*.
    package func matches(_ text: String, within steps: inout Int) -> Bool? {
        var search = Search(program: program)
        defer { steps -= search.stepCount }
        var previous: UInt32?
        for scalar in text.unicodeScalars {
            if search.enter(between: previous, and: scalar.value) { return true }
            guard search.stepCount < steps else { return nil }
            search.step(scalar.value)
            previous = scalar.value
        }
        return search.enter(between: previous, and: nil)
    }

    /// Patterns are equal if they are written in the same way.
    package static func == (left: RegularExpression, right: RegularExpression) -> Bool {
        left.pattern == right.pattern
    }

    /// By the pattern.
    package func hash(into hasher: inout Hasher) { hasher.combine(pattern) }
}

extension RegularExpression {
    /// Compiles a pattern into instructions.
    private struct Compiler {
        var program: [Instruction] = []

        mutating func append(_ node: RegexNode) throws(RegexParser.Fault) {
            switch node {
            case .empty: break
            case .scalars(let set): try emit(.scalars(set))
            case .assertion(let assertion): try emit(.assertion(assertion))
            case .sequence(let parts): for part in parts { try append(part) }
            case .alternation(let choices): try append(alternation: choices)
            case .repetition(let node, let minimum, let maximum):
                try append(node, minimum: minimum, maximum: maximum)
            }
        }

        private mutating func emit(_ instruction: Instruction) throws(RegexParser.Fault) {
            guard program.count < instructionLimit else {
                let message = "more than \(instructionLimit) instructions"
                throw RegexParser.Fault(message: message, offset: 0)
            }
            program.append(instruction)
        }

        private mutating func append(alternation choices: [RegexNode]) throws(RegexParser.Fault) {
            var exits: [Int] = []
            for choice in choices.dropLast() {
                let split = program.count
                try emit(.match)
                try append(choice)
                exits.append(program.count)
                try emit(.match)
                program[split] = .split(split + 1, program.count)
            }
            if let last = choices.last { try append(last) }
            for exit in exits { program[exit] = .jump(program.count) }
        }

        private mutating func append(
            _ node: RegexNode,
            minimum: Int,
            maximum: Int?
        ) throws(RegexParser.Fault) {
            let begin = program.count
            for _ in 0..<minimum {
                try append(node)
                // Repeating a node that matches only the empty text changes nothing.
                if program.count == begin { return }
            }
            guard let maximum else {
                let split = program.count
                try emit(.match)
                try append(node)
                try emit(.jump(split))
                program[split] = .split(split + 1, program.count)
                return
            }
            var splits: [Int] = []
            for _ in minimum..<maximum {
                splits.append(program.count)
                try emit(.match)
                try append(node)
            }
            for split in splits { program[split] = .split(split + 1, program.count) }
        }
    }

    /// The places in the program at which a match that has begun may be.
    private struct Search {
        let program: [Instruction]
        /// The instructions that wait for a code point.
        private var waiting: [Int] = []
        /// Where to continue at the next code point.
        private var arrivals: [Int] = []
        /// The round in which each instruction was last visited, to visit it once in each.
        private var visited: [Int]
        private var round = 0
        private var pending: [Int] = []
        /// The number of visited instructions.
        private(set) var stepCount = 0

        init(program: [Instruction]) {
            self.program = program
            visited = Array(repeating: 0, count: program.count)
        }

        /// Follows everything that needs no code point; returns whether a match ends here.
        ///
        /// A match may also begin here.
        mutating func enter(between previous: UInt32?, and next: UInt32?) -> Bool {
            round += 1
            waiting.removeAll(keepingCapacity: true)
            pending = arrivals
            pending.append(0)
            while let place = pending.popLast() {
                stepCount += 1
                guard visited[place] != round else { continue }
                visited[place] = round
                switch program[place] {
                case .match: return true
                case .scalars: waiting.append(place)
                case .jump(let target): pending.append(target)
                case .split(let first, let second): pending += [second, first]
                case .assertion(let assertion):
                    if assertion.holds(between: previous, and: next) { pending.append(place + 1) }
                }
            }
            return false
        }

        mutating func step(_ scalar: UInt32) {
            arrivals.removeAll(keepingCapacity: true)
            for place in waiting {
                guard case .scalars(let set) = program[place], set.contains(scalar) else {
                    continue
                }
                arrivals.append(place + 1)
            }
        }
    }
}

extension RegexAssertion {
    func holds(between previous: UInt32?, and next: UInt32?) -> Bool {
        switch self {
        case .start: previous == nil
        case .end: next == nil
        case .wordBoundary: isBoundary(previous, next)
        case .noWordBoundary: !isBoundary(previous, next)
        }
    }

    private func isBoundary(_ previous: UInt32?, _ next: UInt32?) -> Bool {
        func isWord(_ scalar: UInt32?) -> Bool {
            scalar.map { ScalarSet.wordScalars.contains($0) } ?? false
        }
        return isWord(previous) != isWord(next)
    }
}
