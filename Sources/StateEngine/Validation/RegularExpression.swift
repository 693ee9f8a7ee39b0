/// A regular expression whose search takes time in proportion to the text, whatever the pattern.
///
/// All places where a match can be are followed at once (Thompson's simulation), so there is nothing to go
/// back to: `(a*)*b` costs no more than its size with each character. Swift's `Regex` goes back, so a pattern and a text
/// chosen together could hold a writer for hours.
package struct RegularExpression: Hashable, Sendable {
    /// The pattern as it was written.
    package let pattern: String
    private let program: [Instruction]

    /// As many instructions may a pattern have; `x{1000}` has 1,000.
    static let instructionLimit = 10_000
    /// As many steps may one value take, about 40 ms: nobody else is served meanwhile.
    ///
    /// A usual pattern takes a few for each code point; 256 KiB under `(a?){1000}a{1000}` would take 8 s, in which a daemon that
    /// checks it serves nobody.
    package static let stepLimit = 2_000_000

    private enum Instruction: Sendable {
        case scalars(ScalarSet)
        case assertion(RegexAssertion)
        /// Goes on at both places.
        case split(Int, Int)
        case jump(Int)
        case match
    }

    /// Reads a pattern in the syntax of ECMA 262, without back-references and look-around.
    ///
    /// - Throws: ``StateError/Code/err``, naming the place and what is wrong there; also where the pattern is
    ///   compiled to more than 10,000 instructions.
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

    /// Whether a part of `text` matches; `^` and `$` are its beginning and its end.
    ///
    /// - Parameters:
    ///   - text: What is searched.
    ///   - steps: As many it may take; those that it took are taken off.
    /// - Returns: nil where they are used up before it is known.
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

    /// Patterns are the same if they are written the same.
    package static func == (left: RegularExpression, right: RegularExpression) -> Bool {
        left.pattern == right.pattern
    }

    /// By the pattern.
    package func hash(into hasher: inout Hasher) { hasher.combine(pattern) }
}

extension RegularExpression {
    /// Lays a pattern out as instructions.
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
                // A node that matches nothing but the empty text is as good once as often.
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

    /// The places in the program where a match that began somewhere can be.
    private struct Search {
        let program: [Instruction]
        /// The instructions that wait for a code point.
        private var waiting: [Int] = []
        /// Where to go on at the next code point.
        private var arrivals: [Int] = []
        /// The round in which each instruction was last visited, so that it is visited once in each.
        private var visited: [Int]
        private var round = 0
        private var pending: [Int] = []
        /// Instructions that were looked at.
        private(set) var stepCount = 0

        init(program: [Instruction]) {
            self.program = program
            visited = Array(repeating: 0, count: program.count)
        }

        /// Follows all that needs no code point, and says whether a match ends here; one may begin here too.
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
