/// The syntax tree of a regular expression.
indirect enum RegexNode {
    case empty
    case scalars(ScalarSet)
    case assertion(RegexAssertion)
    case sequence([RegexNode])
    case alternation([RegexNode])
    /// Without an upper bound if `maximum` is nil.
    case repetition(RegexNode, minimum: Int, maximum: Int?)
}

/// A condition on a position in the text.
enum RegexAssertion {
    case start
    case end
    case wordBoundary
    case noWordBoundary
}

/// Code points: ascending ranges that do not touch.
package struct ScalarSet: Sendable {
    private(set) var ranges: [ClosedRange<UInt32>] = []

    static let all = ScalarSet([0...0x10FFFF])
    static let digits = ScalarSet([0x30...0x39])
    static let wordScalars = ScalarSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    /// White space and ends of lines, as in ECMA 262.
    static let spaces = ScalarSet([
        0x09...0x0D, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029,
        0x202F...0x202F, 0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ])
    /// What `.` matches.
    static let withoutLineEnds = ScalarSet([0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029]).inverted

    init(_ ranges: [ClosedRange<UInt32>]) {
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = self.ranges.last, range.lowerBound <= last.upperBound &+ 1 {
                let end = max(last.upperBound, range.upperBound)
                self.ranges[self.ranges.count - 1] = last.lowerBound...end
            } else {
                self.ranges.append(range)
            }
        }
    }

    var inverted: ScalarSet {
        var rest: [ClosedRange<UInt32>] = []
        var next: UInt32 = 0
        for range in ranges {
            if range.lowerBound > next { rest.append(next...range.lowerBound - 1) }
            next = range.upperBound + 1
        }
        if next <= 0x10FFFF { rest.append(next...0x10FFFF) }
        return ScalarSet(rest)
    }

    /// - Complexity: O(log *n*) in the ranges.
    package func contains(_ scalar: UInt32) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < scalar { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].lowerBound <= scalar
    }
}
