/// Matches globs in linear time, for those that need too many steps with the simple algorithm.
///
/// A glob consists of segments between `*`. The first must be the start of the text, the last its
/// end, and each of the others is searched for after the one before it: the leftmost match is
/// always good enough. The search keeps, as one bit each, how many elements of the segment match
/// the text that ends here (Baeza-Yates and Gonnet, "A new approach to text searching", 1992), so
/// each byte of the text costs one step for 64 elements. Which elements a byte matches is found when
/// the text has it: a short text has few different bytes, and classes for all 256 would take longer
/// than everything else.
package struct GlobSearch: ~Copyable {
    private let pattern: Bytes
    /// The number of words of bits for the longest segment.
    private let wordCount: Int
    /// For each byte, the elements of the segment that match it, `wordCount` words each.
    private let masks: UnsafeMutableBufferPointer<UInt64>
    /// For each byte, the last segment that its mask is of.
    private let segments: UnsafeMutableBufferPointer<Int>
    /// The bytes that each element of the segment matches, 256 bits each.
    private let elements: UnsafeMutableBufferPointer<GlobClass.Bits>
    private let state: UnsafeMutableBufferPointer<UInt64>
    /// How many segments were searched for.
    private var segmentCount = 0
    /// About how many steps of the simple algorithm it has taken as long as.
    private var stepCount = 0

    /// Whether all of `text` matches.
    ///
    /// - Complexity: O(*n* + *m*) in the bytes of pattern and text, times *m* / 64 for segments
    ///   longer than 64 elements, and O(*n* · *k*) for the *k* different bytes of the text.
    package static func matches(_ pattern: Bytes, _ text: Bytes) -> Bool {
        var left = 0
        return matches(pattern, text, counting: &left)
    }

    /// The same; takes about the steps of that from `left`, which may become negative.
    static func matches(_ pattern: Bytes, _ text: Bytes, counting left: inout Int) -> Bool {
        var search = GlobSearch(pattern)
        let found = search.matches(text)
        left -= search.stepCount
        return found
    }

    private init(_ pattern: Bytes) {
        self.pattern = pattern
        let longest = GlobSearch.longestSegment(of: pattern)
        wordCount = longest / 64 + 1
        masks = .allocate(capacity: 256 * wordCount)
        segments = .allocate(capacity: 256)
        elements = .allocate(capacity: longest)
        state = .allocate(capacity: wordCount)
        masks.initialize(repeating: 0)
        segments.initialize(repeating: 0)
        elements.initialize(repeating: GlobClass.Bits(repeating: 0))
        state.initialize(repeating: 0)
        stepCount = 128 * wordCount + 4 * pattern.count + 4 * longest
    }

    deinit {
        masks.deallocate()
        segments.deallocate()
        elements.deallocate()
        state.deallocate()
    }

    private mutating func matches(_ text: Bytes) -> Bool {
        var (p, t) = (0, 0)
        while p < pattern.count, !isStar(p) {
            guard t < text.count, let next = Glob.step(pattern, p, text[t]) else { return false }
            (p, t) = (next, t + 1)
        }
        guard p < pattern.count else { return t == text.count }
        while true {
            while p < pattern.count, isStar(p) { p += 1 }
            let (end, elementCount) = segment(from: p)
            guard end < pattern.count else { return matchesEnd(p, elementCount, text, from: t) }
            guard let found = find(p, end, elementCount, in: text, from: t) else { return false }
            (p, t) = (end, found)
        }
    }

    private func isStar(_ index: Int) -> Bool { pattern[index] == UInt8(ascii: "*") }

    /// The number of elements of the longest segment.
    private static func longestSegment(of pattern: Bytes) -> Int {
        var (index, count, longest) = (0, 0, 0)
        while index < pattern.count {
            count = pattern[index] == UInt8(ascii: "*") ? 0 : count + 1
            longest = max(longest, count)
            index = elementEnd(pattern, index)
        }
        return longest
    }

    /// The end of the segment that begins at `start`, and its number of elements.
    private func segment(from start: Int) -> (end: Int, elementCount: Int) {
        var (index, count) = (start, 0)
        while index < pattern.count, !isStar(index) {
            index = GlobSearch.elementEnd(pattern, index)
            count += 1
        }
        return (index, count)
    }

    private static func elementEnd(_ pattern: Bytes, _ index: Int) -> Int {
        switch pattern[index] {
        case UInt8(ascii: "["): GlobClass.end(pattern, after: index)
        case UInt8(ascii: "\\") where index + 1 < pattern.count: index + 2
        default: index + 1
        }
    }

    /// Whether the last segment is the end of the text.
    private func matchesEnd(_ start: Int, _ elementCount: Int, _ text: Bytes, from: Int) -> Bool {
        guard text.count - from >= elementCount else { return false }
        var (p, t) = (start, text.count - elementCount)
        while t < text.count {
            guard let next = Glob.step(pattern, p, text[t]) else { return false }
            (p, t) = (next, t + 1)
        }
        return true
    }

    /// The index in the text after the leftmost match of a segment; nil if there is none.
    private mutating func find(
        _ start: Int,
        _ end: Int,
        _ elementCount: Int,
        in text: Bytes,
        from: Int
    ) -> Int? {
        guard elementCount > 0 else { return from }
        guard text.count - from >= elementCount else { return nil }
        readElements(start, end)
        let used = (elementCount + 63) / 64
        for word in 0..<used { state[word] = 0 }
        let last = UInt64(1) << UInt64((elementCount - 1) & 63)
        for t in from..<text.count {
            stepCount += used
            let row = mask(of: text[t], elementCount)
            var carry: UInt64 = 1
            for word in 0..<used {
                let old = state[word]
                state[word] = (old << 1 | carry) & masks[row + word]
                carry = old >> 63
            }
            if state[used - 1] & last != 0 { return t + 1 }
        }
        return nil
    }

    /// The place of the mask of a byte, which is made at its first use in a segment.
    private mutating func mask(of byte: UInt8, _ elementCount: Int) -> Int {
        let row = Int(byte) * wordCount
        guard segments[Int(byte)] != segmentCount else { return row }
        segments[Int(byte)] = segmentCount
        stepCount += elementCount
        let (part, shift) = (Int(byte >> 6), UInt64(byte & 63))
        for word in 0..<(elementCount + 63) / 64 {
            var bits: UInt64 = 0
            for number in 64 * word..<min(64 * word + 64, elementCount) {
                bits |= (elements[number][part] >> shift & 1) << UInt64(number & 63)
            }
            masks[row + word] = bits
        }
        return row
    }

    /// Reads which bytes the elements of the next segment match.
    private mutating func readElements(_ start: Int, _ end: Int) {
        segmentCount += 1
        stepCount += 2 * (end - start)
        var (index, number) = (start, 0)
        while index < end {
            elements[number] =
                switch pattern[index] {
                case UInt8(ascii: "?"): GlobClass.Bits(repeating: .max)
                case UInt8(ascii: "["): GlobClass(pattern, after: index).bits
                case UInt8(ascii: "\\") where index + 1 < pattern.count:
                    GlobClass.bits(of: pattern[index + 1])
                default: GlobClass.bits(of: pattern[index])
                }
            index = GlobSearch.elementEnd(pattern, index)
            number += 1
        }
    }
}
