/// Labels of host names in ASCII.
///
/// https://www.rfc-editor.org/rfc/rfc3492
enum Punycode {
    private static let (base, least, most, first) = (36, 1, 26, 128)

    /// The threshold of a digit at `place`.
    private static func threshold(_ place: Int, _ bias: Int) -> Int {
        min(max(place - bias, least), most)
    }

    private static func bias(after delta: Int, _ count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / 700 : delta / 2
        delta += delta / count
        var places = 0
        while delta > (base - least) * most / 2 {
            delta /= base - least
            places += base
        }
        return places + (base - least + 1) * delta / (delta + 38)
    }

    /// The code points that a text of ASCII in lower case stands for; nil if it stands for none.
    ///
    /// - Complexity: O(*n*²); labels have at most 63 code points.
    static func decoded(_ code: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        let hyphen = code.lastIndex(of: "-")
        var scalars = hyphen.map { Array(code[..<$0]) } ?? []
        var rest = code[(hyphen.map { $0 + 1 } ?? 0)...]
        var (value, index, bias) = (first, 0, 72)
        while !rest.isEmpty {
            let start = index
            var (weight, place) = (1, base)
            while true {
                guard let digit = rest.popFirst().flatMap(digit), digit < (1 << 32) / weight else {
                    return nil
                }
                index += digit * weight
                let threshold = threshold(place, bias)
                if digit < threshold { break }
                weight *= base - threshold
                place += base
                guard weight < 1 << 32, index < 1 << 32 else { return nil }
            }
            let count = scalars.count + 1
            bias = Punycode.bias(after: index - start, count, isFirst: start == 0)
            value += index / count
            index %= count
            guard let scalar = Unicode.Scalar(UInt32(clamping: value)) else { return nil }
            scalars.insert(scalar, at: index)
            index += 1
        }
        return scalars
    }

    private static func digit(_ scalar: Unicode.Scalar) -> Int? {
        switch scalar {
        case "a"..."z": Int(scalar.value) - 0x61
        case "0"..."9": Int(scalar.value) - 0x30 + 26
        default: nil
        }
    }

    /// The text of ASCII for a label of at most 63 code points.
    ///
    /// - Complexity: O(*n*²)
    static func encoded(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        var code = scalars.filter(\.isASCII)
        let basicCount = code.count
        var done = basicCount
        if basicCount > 0 { code.append("-") }
        var (value, delta, bias) = (first, 0, 72)
        while done < scalars.count {
            let rest = scalars.map { Int($0.value) }.filter { $0 >= value }
            guard let next = rest.min() else { return nil }
            delta += (next - value) * (done + 1)
            value = next
            for scalar in scalars {
                if scalar.value < value { delta += 1 }
                guard scalar.value == value else { continue }
                append(delta, bias, to: &code)
                bias = Punycode.bias(after: delta, done + 1, isFirst: done == basicCount)
                delta = 0
                done += 1
            }
            delta += 1
            value += 1
        }
        return code
    }

    private static func append(_ delta: Int, _ bias: Int, to code: inout [Unicode.Scalar]) {
        var (rest, place) = (delta, base)
        while true {
            let threshold = threshold(place, bias)
            guard rest >= threshold else { break }
            let digit = threshold + (rest - threshold) % (base - threshold)
            code.append(scalar(digit))
            rest = (rest - threshold) / (base - threshold)
            place += base
        }
        code.append(scalar(rest))
    }

    private static func scalar(_ digit: Int) -> Unicode.Scalar {
        Unicode.Scalar(UInt8(digit < 26 ? digit + 0x61 : digit - 26 + 0x30))
    }
}
