/// Redis's globs: `*`, `?`, `[a-c]`, `[^a]`, and `\` for the next byte as it is; bytes, not characters.
///
/// Iterative: a mismatch goes back to the last `*` alone, which is enough, since a later `*` can take
/// whatever an earlier one could. So the cost is at most pattern times text.
enum Glob {
    static func matches(_ pattern: Bytes, _ text: Bytes) -> Bool {
        var (p, t) = (0, 0)
        var retry: (pattern: Int, text: Int)?
        while t < text.count {
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                p += 1
                retry = (p, t)
            } else if p < pattern.count, let next = step(pattern, p, text[t]) {
                p = next
                t += 1
            } else if let last = retry {
                p = last.pattern
                t = last.text + 1
                retry = (p, t)
            } else {
                return false
            }
        }
        while p < pattern.count, pattern[p] == UInt8(ascii: "*") { p += 1 }
        return p == pattern.count
    }

    /// The place after the element at `index`, where that matches `byte`; else nil.
    private static func step(_ pattern: Bytes, _ index: Int, _ byte: UInt8) -> Int? {
        switch pattern[index] {
        case UInt8(ascii: "?"):
            return index + 1
        case UInt8(ascii: "["):
            return stepClass(pattern, index + 1, byte)
        case UInt8(ascii: "\\") where index + 1 < pattern.count:
            return pattern[index + 1] == byte ? index + 2 : nil
        default:
            return pattern[index] == byte ? index + 1 : nil
        }
    }

    /// A class from after its `[`.
    ///
    /// As in Redis, one without `]` ends with the pattern, a `]` may end a range,
    /// and an escaped byte begins none.
    private static func stepClass(_ pattern: Bytes, _ start: Int, _ byte: UInt8) -> Int? {
        var index = start
        let isNegated = index < pattern.count && pattern[index] == UInt8(ascii: "^")
        if isNegated { index += 1 }
        var isIn = false
        while index < pattern.count, pattern[index] != UInt8(ascii: "]") {
            var (low, high) = (pattern[index], pattern[index])
            if low == UInt8(ascii: "\\"), index + 1 < pattern.count {
                index += 1
                (low, high) = (pattern[index], pattern[index])
            } else if index + 2 < pattern.count, pattern[index + 1] == UInt8(ascii: "-") {
                high = pattern[index + 2]
                index += 2
            }
            if min(low, high) <= byte && byte <= max(low, high) { isIn = true }
            index += 1
        }
        guard isIn != isNegated else { return nil }
        return min(index + 1, pattern.count)
    }
}
