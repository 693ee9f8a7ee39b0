import StateEngine

/// Names of hosts in all scripts (IDNA 2008), without the rule for names in two directions.
enum InternationalName {
    private static let dots: [Unicode.Scalar] = [".", "\u{3002}", "\u{FF0E}", "\u{FF61}"]

    /// Whether each label is one that may be registered.
    ///
    /// https://www.rfc-editor.org/rfc/rfc5891#section-5
    ///
    /// - Complexity: O(*n*)
    static func isHostname(_ text: String) -> Bool {
        let labels = text.unicodeScalars.split(omittingEmptySubsequences: false) {
            dots.contains($0)
        }
        var length = labels.count - 1
        for label in labels {
            guard let count = byteCount(of: Array(label)) else { return false }
            length += count
        }
        return length <= 253
    }

    /// Whether a label that begins with `xn--` stands for one; true for all others.
    static func isReadable(_ label: String) -> Bool {
        let name = label.lowercased()
        guard name.hasPrefix("xn--") else { return true }
        let code = Array(name.unicodeScalars.dropFirst(4))
        guard let scalars = Punycode.decoded(code), !scalars.allSatisfy(\.isASCII) else {
            return false
        }
        return isLabel(scalars) && Punycode.encoded(scalars).map(Array.init) == code
    }

    /// The bytes of a label in the domain name system; nil if it is not valid.
    private static func byteCount(of label: [Unicode.Scalar]) -> Int? {
        // Each code point takes a byte or more.
        guard !label.isEmpty, label.count <= 63 else { return nil }
        guard !label.allSatisfy(\.isASCII) else {
            let text = String(String.UnicodeScalarView(label))
            let isCoded = text.lowercased().hasPrefix("xn--")
            guard FormatCheck.isLabel(Array(text.utf8)[...]), isReadable(text),
                isCoded || !hasReservedHyphens(label)
            else { return nil }
            return label.count
        }
        guard isLabel(label), let code = Punycode.encoded(label), code.count <= 59 else {
            return nil
        }
        return code.count + 4
    }

    private static func hasReservedHyphens(_ label: [Unicode.Scalar]) -> Bool {
        label.count >= 4 && label[2] == "-" && label[3] == "-"
    }

    /// Whether it is a label that is not only ASCII.
    private static func isLabel(_ label: [Unicode.Scalar]) -> Bool {
        guard let first = label.first, first != "-", label.last != "-", !hasReservedHyphens(label)
        else { return false }
        switch first.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return false
        default: break
        }
        return label.indices.allSatisfy { isAllowed(label, $0) }
    }

    // MARK: Code points

    /// The exceptions to the rule.
    ///
    /// https://www.rfc-editor.org/rfc/rfc5892#section-2.6
    private static let allowed: Set<UInt32> = [0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007]
    private static let forbidden: Set<UInt32> = [
        0x640, 0x7FA, 0x302E, 0x302F, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B,
    ]
    /// Old Korean letters, and signs of symbols and music.
    private static let forbiddenRanges: [ClosedRange<UInt32>] = [
        0x1100...0x11FF, 0xA960...0xA97F, 0xD7B0...0xD7FF, 0x20D0...0x20FF, 0x1D100...0x1D1FF,
        0x1D200...0x1D24F,
    ]

    private static func isAllowed(_ label: [Unicode.Scalar], _ index: Int) -> Bool {
        let scalar = label[index]
        let value = scalar.value
        if let isAllowed = isAllowedByContext(label, index) { return isAllowed }
        if allowed.contains(value) || scalar == "-" { return true }
        let properties = scalar.properties
        guard !forbidden.contains(value), !forbiddenRanges.contains(where: { $0.contains(value) }),
            !properties.changesWhenNFKCCaseFolded, !properties.isDefaultIgnorableCodePoint
        else { return false }
        switch properties.generalCategory {
        case .lowercaseLetter, .uppercaseLetter, .otherLetter, .modifierLetter, .decimalNumber,
            .nonspacingMark, .spacingMark:
            return true
        default: return false
        }
    }

    /// What the neighbours decide; nil if they do not.
    ///
    /// https://www.rfc-editor.org/rfc/rfc5892#appendix-A
    private static func isAllowedByContext(_ label: [Unicode.Scalar], _ index: Int) -> Bool? {
        let before = index > 0 ? label[index - 1] : nil
        let after = index + 1 < label.count ? label[index + 1] : nil
        func isOf(_ script: String, _ scalar: Unicode.Scalar?) -> Bool {
            scalar.map { UnicodeScript.set(script)?.contains($0.value) ?? false } ?? false
        }
        switch label[index].value {
        case 0xB7: return before == "l" && after == "l"
        case 0x375: return isOf("Greek", after)
        case 0x5F3, 0x5F4: return isOf("Hebrew", before)
        case 0x30FB:
            return label.contains { scalar in
                ["Hiragana", "Katakana", "Han"].contains { isOf($0, scalar) }
            }
        case 0x660...0x669: return !label.contains { (0x6F0...0x6F9).contains($0.value) }
        case 0x6F0...0x6F9: return !label.contains { (0x660...0x669).contains($0.value) }
        case 0x200C: return isVirama(before) || joins(label, index)
        case 0x200D: return isVirama(before)
        default: return nil
        }
    }

    private static func isVirama(_ scalar: Unicode.Scalar?) -> Bool {
        scalar?.properties.canonicalCombiningClass.rawValue == 9
    }

    /// Whether the letters around a non-joiner would join without it; only Arabic letters are
    /// known.
    private static func joins(_ label: [Unicode.Scalar], _ index: Int) -> Bool {
        func isMark(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.generalCategory == .nonspacingMark
        }
        guard let before = label[..<index].last(where: { !isMark($0) }),
            let after = label[(index + 1)...].first(where: { !isMark($0) })
        else { return false }
        return joinsNext(before) && isArabicLetter(after)
    }

    private static func isArabicLetter(_ scalar: Unicode.Scalar) -> Bool {
        (0x620...0x6FF).contains(scalar.value) && scalar.value != 0x621
            && scalar.properties.generalCategory == .otherLetter
    }

    /// Letters that join only with the one before them.
    private static let lastLetters: [ClosedRange<UInt32>] = [
        0x622...0x625, 0x627...0x627, 0x629...0x629, 0x62F...0x632, 0x648...0x648, 0x671...0x677,
        0x688...0x699, 0x6C0...0x6C0, 0x6C3...0x6CB, 0x6CD...0x6CD, 0x6CF...0x6CF, 0x6D2...0x6D5,
        0x6EE...0x6EF,
    ]

    private static func joinsNext(_ scalar: Unicode.Scalar) -> Bool {
        isArabicLetter(scalar) && !lastLetters.contains { $0.contains(scalar.value) }
    }
}
