/// Redis's globs: `*`, `?`, `[a-c]`, `[^a]`, and `\` for the next byte literally; bytes, not
/// characters.
///
/// The simple algorithm goes back to the last `*` at a mismatch. At worst that costs pattern times
/// text (128 KiB of `a*` against a long key took milliseconds), so its number of steps is limited,
/// linear in both. A match that needs more of them starts again with ``GlobSearch``, which is
/// always linear.
enum Glob {
    /// Whether `text` matches; takes the steps of that from `left`, which may become negative.
    ///
    /// - Complexity: as ``GlobSearch/matches(_:_:)``.
    static func matches(_ pattern: Bytes, _ text: Bytes, counting left: inout Int) -> Bool {
        let limit = 4 * (pattern.count + text.count) + 64
        var steps = limit
        let found = backtrack(pattern, text, &steps)
        left -= limit - steps
        if let found { return found }
        return GlobSearch.matches(pattern, text, counting: &left)
    }

    /// Whether `pattern` matches; nil if that took more than `steps`.
    private static func backtrack(_ pattern: Bytes, _ text: Bytes, _ steps: inout Int) -> Bool? {
        var (p, t) = (0, 0)
        var retry: (pattern: Int, text: Int)?
        while t < text.count {
            steps -= 1
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                p += 1
                // Whatever follows matches the last `*`.
                if p == pattern.count { return true }
                retry = (p, t)
            } else if p < pattern.count, let next = step(pattern, p, text[t]) {
                steps -= next - p
                p = next
                t += 1
            } else if let last = retry {
                // A class that does not match was read completely, too.
                if p < pattern.count, pattern[p] == UInt8(ascii: "[") {
                    steps -= GlobClass.end(pattern, after: p) - p
                }
                p = last.pattern
                t = last.text + 1
                retry = (p, t)
            } else {
                return false
            }
            if steps < 0 { return nil }
        }
        while p < pattern.count, pattern[p] == UInt8(ascii: "*") { p += 1 }
        return p == pattern.count
    }

    /// The index after the element at `index`, if that matches `byte`; otherwise nil.
    static func step(_ pattern: Bytes, _ index: Int, _ byte: UInt8) -> Int? {
        switch pattern[index] {
        case UInt8(ascii: "?"):
            return index + 1
        case UInt8(ascii: "["):
            let found = GlobClass(pattern, after: index)
            return found.contains(byte) ? found.end : nil
        case UInt8(ascii: "\\") where index + 1 < pattern.count:
            return pattern[index + 1] == byte ? index + 2 : nil
        default:
            return pattern[index] == byte ? index + 1 : nil
        }
    }
}

/// The bytes that a class `[a-c]` of a glob matches.
///
/// As in Redis, a class without `]` ends with the pattern, a `]` may end a range, and an escaped
/// byte does not begin one.
struct GlobClass {
    /// One for each byte.
    typealias Bits = InlineArray<4, UInt64>

    /// The index after the class.
    let end: Int
    /// The bytes that it matches.
    let bits: Bits

    /// Reads the class whose `[` is at `start`.
    init(_ pattern: Bytes, after start: Int) {
        var index = start + 1
        let isNegated = index < pattern.count && pattern[index] == UInt8(ascii: "^")
        if isNegated { index += 1 }
        var words = Bits(repeating: 0)
        while index < pattern.count, pattern[index] != UInt8(ascii: "]") {
            var (low, high) = (pattern[index], pattern[index])
            if low == UInt8(ascii: "\\"), index + 1 < pattern.count {
                index += 1
                (low, high) = (pattern[index], pattern[index])
            } else if index + 2 < pattern.count, pattern[index + 1] == UInt8(ascii: "-") {
                high = pattern[index + 2]
                index += 2
            }
            index += 1
            guard low != high else {
                words[Int(low >> 6)] |= 1 << UInt64(low & 63)
                continue
            }
            let (first, last) = (Int(min(low, high)), Int(max(low, high)))
            for number in first / 64...last / 64 {
                words[number] |= GlobClass.word(number, first, last)
            }
        }
        if isNegated { for number in words.indices { words[number] = ~words[number] } }
        bits = words
        end = min(index + 1, pattern.count)
    }

    /// The index after the class whose `[` is at `start`.
    static func end(_ pattern: Bytes, after start: Int) -> Int {
        var index = start + 1
        if index < pattern.count, pattern[index] == UInt8(ascii: "^") { index += 1 }
        while index < pattern.count, pattern[index] != UInt8(ascii: "]") {
            if pattern[index] == UInt8(ascii: "\\"), index + 1 < pattern.count {
                index += 1
            } else if index + 2 < pattern.count, pattern[index + 1] == UInt8(ascii: "-") {
                index += 2
            }
            index += 1
        }
        return min(index + 1, pattern.count)
    }

    func contains(_ byte: UInt8) -> Bool {
        bits[Int(byte >> 6)] >> UInt64(byte & 63) & 1 == 1
    }

    /// Those of an element that matches one byte.
    static func bits(of byte: UInt8) -> Bits {
        var bits = Bits(repeating: 0)
        bits[Int(byte >> 6)] = 1 << UInt64(byte & 63)
        return bits
    }

    /// The bits from `first` to `last` of 256 that are in word `number`, which has at least one of
    /// them.
    private static func word(_ number: Int, _ first: Int, _ last: Int) -> UInt64 {
        let low = max(first - 64 * number, 0)
        let high = min(last - 64 * number, 63)
        return (UInt64.max >> UInt64(63 - high)) & (UInt64.max << UInt64(low))
    }
}
