import Synchronization

/// The properties of code points that a pattern may name: `\p{Lu}`, `\p{Script=Greek}`,
/// `\p{Alphabetic}`.
///
/// https://tc39.es/ecma262/#table-unicode-general-category-values
enum UnicodeProperty {
    /// Sets by the text between the braces; each is found once, in some 10 ms.
    private static let known = Mutex<[String: ScalarSet]>([:])
    private static let knownLimit = 400

    /// The code points that `text` names; nil if there is no such property.
    ///
    /// - Complexity: O(1) for one that was asked for before; otherwise all code points are visited.
    static func set(_ text: String) -> ScalarSet? {
        if let set = known.withLock({ $0[text] }) { return set }
        guard let set = find(text) else { return nil }
        known.withLock { if $0.count < knownLimit { $0[text] = set } }
        return set
    }

    /// Whether there is such a property.
    static func isKnown(_ text: String) -> Bool { membership(text) != nil }

    private typealias Membership = @Sendable (Unicode.Scalar) -> Bool

    private static func find(_ text: String) -> ScalarSet? { membership(text).map(scalars) }

    private static func membership(_ text: String) -> Membership? {
        let parts = text.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else {
            return parts.count == 1 ? category(text) ?? binary(text) : nil
        }
        switch parts[0] {
        case "General_Category", "gc": return category(parts[1])
        case "Script", "sc":
            guard let set = UnicodeScript.set(parts[1]) else { return nil }
            return { set.contains($0.value) }
        default: return nil
        }
    }

    private static func scalars(_ isMember: Membership) -> ScalarSet {
        var ranges: [ClosedRange<UInt32>] = []
        var start: UInt32?
        // Surrogates are in no string.
        for value in 0...UInt32(0x110000) {
            let isIn = Unicode.Scalar(value).map(isMember) ?? false
            if isIn, start == nil { start = value }
            if !isIn, let first = start {
                ranges.append(first...(value - 1))
                start = nil
            }
        }
        return ScalarSet(ranges)
    }

    // MARK: General categories

    private static func category(_ name: String) -> Membership? {
        let found = categoryNames.first { $0.names.split(separator: "/").contains { $0 == name } }
        guard let row = found else { return nil }
        return { row.categories.contains($0.properties.generalCategory) }
    }

    private typealias Category = Unicode.GeneralCategory

    /// The names of each row are separated by slashes: an array for each would be 18 KB of code.
    private static let categoryNames: [(names: String, categories: [Category])] = [
        ("LC/Cased_Letter", [.uppercaseLetter, .lowercaseLetter, .titlecaseLetter]),
        ("Lu/Uppercase_Letter", [.uppercaseLetter]),
        ("Ll/Lowercase_Letter", [.lowercaseLetter]),
        ("Lt/Titlecase_Letter", [.titlecaseLetter]),
        ("Lm/Modifier_Letter", [.modifierLetter]), ("Lo/Other_Letter", [.otherLetter]),
        (
            "L/Letter",
            [.uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter]
        ), ("Mn/Nonspacing_Mark", [.nonspacingMark]),
        ("Mc/Spacing_Mark", [.spacingMark]), ("Me/Enclosing_Mark", [.enclosingMark]),
        ("M/Mark/Combining_Mark", [.nonspacingMark, .spacingMark, .enclosingMark]),
        ("Nd/Decimal_Number/digit", [.decimalNumber]),
        ("Nl/Letter_Number", [.letterNumber]), ("No/Other_Number", [.otherNumber]),
        ("N/Number", [.decimalNumber, .letterNumber, .otherNumber]),
        ("Pc/Connector_Punctuation", [.connectorPunctuation]),
        ("Pd/Dash_Punctuation", [.dashPunctuation]),
        ("Ps/Open_Punctuation", [.openPunctuation]),
        ("Pe/Close_Punctuation", [.closePunctuation]),
        ("Pi/Initial_Punctuation", [.initialPunctuation]),
        ("Pf/Final_Punctuation", [.finalPunctuation]),
        ("Po/Other_Punctuation", [.otherPunctuation]),
        (
            "P/Punctuation/punct",
            [
                .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation,
                .initialPunctuation, .finalPunctuation, .otherPunctuation,
            ]
        ), ("Sm/Math_Symbol", [.mathSymbol]),
        ("Sc/Currency_Symbol", [.currencySymbol]),
        ("Sk/Modifier_Symbol", [.modifierSymbol]), ("So/Other_Symbol", [.otherSymbol]),
        ("S/Symbol", [.mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol]),
        ("Zs/Space_Separator", [.spaceSeparator]),
        ("Zl/Line_Separator", [.lineSeparator]),
        ("Zp/Paragraph_Separator", [.paragraphSeparator]),
        ("Z/Separator", [.spaceSeparator, .lineSeparator, .paragraphSeparator]),
        ("Cc/Control/cntrl", [.control]), ("Cf/Format", [.format]),
        ("Cs/Surrogate", [.surrogate]), ("Co/Private_Use", [.privateUse]),
        ("Cn/Unassigned", [.unassigned]),
        ("C/Other", [.control, .format, .surrogate, .privateUse, .unassigned]),
    ]

    // MARK: Properties that a code point has or has not

    private static func binary(_ name: String) -> Membership? {
        binaryNames.first { $0.names.contains(name) }?.isMember
    }

    private static let binaryNames: [(names: [String], isMember: Membership)] = [
        (["Any"], { _ in true }), (["ASCII"], { $0.isASCII }),
        (["Assigned"], { $0.properties.generalCategory != .unassigned }),
        (["ASCII_Hex_Digit", "AHex"], { $0.properties.isASCIIHexDigit }),
        (["Alphabetic", "Alpha"], { $0.properties.isAlphabetic }),
        (["Case_Ignorable", "CI"], { $0.properties.isCaseIgnorable }),
        (["Cased"], { $0.properties.isCased }), (["Dash"], { $0.properties.isDash }),
        (
            ["Default_Ignorable_Code_Point", "DI"],
            { $0.properties.isDefaultIgnorableCodePoint }
        ), (["Diacritic", "Dia"], { $0.properties.isDiacritic }),
        (["Emoji"], { $0.properties.isEmoji }),
        (["Emoji_Modifier", "EMod"], { $0.properties.isEmojiModifier }),
        (["Emoji_Modifier_Base", "EBase"], { $0.properties.isEmojiModifierBase }),
        (["Emoji_Presentation", "EPres"], { $0.properties.isEmojiPresentation }),
        (["Extender", "Ext"], { $0.properties.isExtender }),
        (["Hex_Digit", "Hex"], { $0.properties.isHexDigit }),
        (["ID_Continue", "IDC"], { $0.properties.isIDContinue }),
        (["ID_Start", "IDS"], { $0.properties.isIDStart }),
        (["Ideographic", "Ideo"], { $0.properties.isIdeographic }),
        (["Lowercase", "Lower"], { $0.properties.isLowercase }),
        (["Math"], { $0.properties.isMath }),
        (["Noncharacter_Code_Point", "NChar"], { $0.properties.isNoncharacterCodePoint }),
        (["Quotation_Mark", "QMark"], { $0.properties.isQuotationMark }),
        (["Uppercase", "Upper"], { $0.properties.isUppercase }),
        (["White_Space", "space"], { $0.properties.isWhitespace }),
        (["XID_Continue", "XIDC"], { $0.properties.isXIDContinue }),
        (["XID_Start", "XIDS"], { $0.properties.isXIDStart }),
    ]
}
