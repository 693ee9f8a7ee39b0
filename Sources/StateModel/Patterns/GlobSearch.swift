/// Matches globs in linear time, for those that need too many steps with the simple algorithm.
///
/// A glob consists of segments between `*`. The first must be the start of the text, the last its
/// end, and each of the others is searched for after the one before it: the leftmost match is
/// always good enough. The search keeps, as one bit each, how many elements of the segment match
/// the text that ends here (Baeza-Yates and Gonnet, "A new approach to text searching", 1992), so
/// each byte of the text costs one step for 64 elements.
package struct GlobSearch: ~Copyable {
    private let pattern: Bytes
    /// The number of words of bits for the longest segment.
    private let wordCount: Int
    /// For each byte, the elements of the segment that match it, `wordCount` words each.
    private let masks: UnsafeMutableBufferPointer<UInt64>
    private let state: UnsafeMutableBufferPointer<UInt64>
    /// Elements that match any byte.
    private let any: UnsafeMutableBufferPointer<UInt64>

    /// Whether all of `text` matches.
    ///
    /// - Complexity: O(*n* + *m*) in the bytes of pattern and text, times *m* / 64 for segments
    ///   longer than 64 elements.
    package static func matches(_ pattern: Bytes, _ text: Bytes) -> Bool {
        let search = GlobSearch(pattern)
        return search.matches(text)
    }

    /// About how many steps of the simple algorithm this takes as long as, at most.
    static func stepCount(_ pattern: Bytes, _ text: Bytes) -> Int {
        let wordCount = longestSegment(of: pattern) / 64 + 1
        return 512 * wordCount + (2 * pattern.count) + text.count * wordCount
            + 512 * classByteCount(of: pattern)
    }

    /// The bytes of classes: each byte is compared with a class, once to set masks and once to clear
    /// them.
    private static func classByteCount(of pattern: Bytes) -> Int {
        var (index, count) = (0, 0)
        while index < pattern.count {
            let end = elementEnd(pattern, index)
            if pattern[index] == UInt8(ascii: "[") { count += end - index }
            index = end
        }
        return count
    }

    private init(_ pattern: Bytes) {
        self.pattern = pattern
        wordCount = GlobSearch.longestSegment(of: pattern) / 64 + 1
        masks = .allocate(capacity: 256 * wordCount)
        state = .allocate(capacity: wordCount)
        any = .allocate(capacity: wordCount)
        masks.initialize(repeating: 0)
        state.initialize(repeating: 0)
        any.initialize(repeating: 0)
    }

    deinit {
        masks.deallocate()
        state.deallocate()
        any.deallocate()
    }

    private func matches(_ text: Bytes) -> Bool {
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
        case UInt8(ascii: "["): GlobClass(pattern, after: index).end
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
    private func find(
        _ start: Int,
        _ end: Int,
        _ elementCount: Int,
        in text: Bytes,
        from: Int
    ) -> Int? {
        guard elementCount > 0 else { return from }
        setMasks(start, end, isSet: true)
        defer { setMasks(start, end, isSet: false) }
        let used = (elementCount + 63) / 64
        for word in 0..<used { state[word] = 0 }
        let last = UInt64(1) << UInt64((elementCount - 1) & 63)
        for t in from..<max(from, text.count) {
            let row = Int(text[t]) * wordCount
            var carry: UInt64 = 1
            for word in 0..<used {
                let old = state[word]
                state[word] = (old << 1 | carry) & (masks[row + word] | any[word])
                carry = old >> 63
            }
            if state[used - 1] & last != 0 { return t + 1 }
        }
        return nil
    }

    /// Records which bytes the elements of a segment match, or clears that.
    private func setMasks(_ start: Int, _ end: Int, isSet: Bool) {
        var (index, number) = (start, 0)
        while index < end {
            let (word, bit) = (number / 64, UInt64(1) << UInt64(number & 63))
            func note(_ byte: UInt8) {
                masks[Int(byte) * wordCount + word] =
                    isSet ? masks[Int(byte) * wordCount + word] | bit : 0
            }
            switch pattern[index] {
            case UInt8(ascii: "?"): any[word] = isSet ? any[word] | bit : 0
            case UInt8(ascii: "["):
                let found = GlobClass(pattern, after: index)
                for byte in UInt8.min...UInt8.max where found.contains(byte) { note(byte) }
            case UInt8(ascii: "\\") where index + 1 < pattern.count: note(pattern[index + 1])
            default: note(pattern[index])
            }
            index = GlobSearch.elementEnd(pattern, index)
            number += 1
        }
    }
}
