// Addresses and names of machines and people.

extension FormatCheck {
    /// 32 hexadecimal digits in five groups.
    ///
    /// https://www.rfc-editor.org/rfc/rfc9562#section-4
    static func isUUID(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count == 36 else { return false }
        return text.enumerated().allSatisfy { index, byte in
            [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : isHexadecimal(byte)
        }
    }

    /// Four numbers from 0 to 255 without leading zeros.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3986#section-3.2.2
    static func isIPv4(_ text: ArraySlice<UInt8>) -> Bool {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                (1...3).contains(part.count) && part.allSatisfy(isDigit)
                    && (part.count == 1 || part.first != UInt8(ascii: "0"))
                    && part.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 255
            }
    }

    /// Eight groups of up to four digits.
    ///
    /// `::` stands for one or more of them, an IPv4 address for the last two.
    ///
    /// https://www.rfc-editor.org/rfc/rfc4291#section-2.2
    static func isIPv6(_ text: ArraySlice<UInt8>) -> Bool {
        let colon = UInt8(ascii: ":")
        var halves: [ArraySlice<UInt8>] = [text]
        let places = text.indices.dropLast().filter { text[$0] == colon && text[$0 + 1] == colon }
        if let gap = places.first {
            guard places.count == 1 else { return false }
            halves = [text[..<gap], text[(gap + 2)...]]
        }
        var count = 0
        for (index, half) in halves.enumerated() where !half.isEmpty {
            let groups = half.split(separator: colon, omittingEmptySubsequences: false)
            for (place, group) in groups.enumerated() {
                let isLast = index == halves.count - 1 && place == groups.count - 1
                if isLast, group.contains(UInt8(ascii: ".")) {
                    guard isIPv4(group) else { return false }
                    count += 2
                } else {
                    guard (1...4).contains(group.count), group.allSatisfy(isHexadecimal) else {
                        return false
                    }
                    count += 1
                }
            }
        }
        return halves.count == 2 ? count <= 7 : count == 8
    }

    /// A name of labels with letters, digits and hyphens.
    ///
    /// https://www.rfc-editor.org/rfc/rfc1123#page-13
    static func isHostname(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count <= 253 else { return false }
        return text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            .allSatisfy {
                isLabel($0) && InternationalName.isReadable(String(decoding: $0, as: UTF8.self))
            }
    }

    static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        let hyphen = UInt8(ascii: "-")
        return (1...63).contains(label.count) && label.first != hyphen && label.last != hyphen
            && label.allSatisfy { isLetter($0) || isDigit($0) || $0 == hyphen }
    }

    // MARK: E-mail

    private static let atomSigns = Array("!#$%&'*+/=?^_`{|}~-".utf8)

    /// A mailbox.
    ///
    /// https://www.rfc-editor.org/rfc/rfc5321#section-4.1.2
    static func isEmail(_ text: ArraySlice<UInt8>, isInternational: Bool) -> Bool {
        guard text.count <= 254, let at = text.lastIndex(of: UInt8(ascii: "@")), at <= 64 else {
            return false
        }
        let (local, domain) = (text[..<at], text[(at + 1)...])
        guard isQuoted(local, isInternational) || isDotted(local, isInternational) else {
            return false
        }
        if domain.first == UInt8(ascii: "["), domain.last == UInt8(ascii: "]") {
            let literal = domain.dropFirst().dropLast()
            let tag = Array("IPv6:".utf8)
            return isIPv4(literal)
                || literal.starts(with: tag) && isIPv6(literal.dropFirst(tag.count))
        }
        return isInternational
            ? InternationalName.isHostname(String(decoding: domain, as: UTF8.self))
            : isHostname(domain)
    }

    private static func isDotted(_ text: ArraySlice<UInt8>, _ isInternational: Bool) -> Bool {
        text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy {
            !$0.isEmpty
                && $0.allSatisfy {
                    isLetter($0) || isDigit($0) || atomSigns.contains($0)
                        || isInternational && $0 >= 0x80
                }
        }
    }

    private static func isQuoted(_ text: ArraySlice<UInt8>, _ isInternational: Bool) -> Bool {
        guard text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"")
        else { return false }
        var isEscaped = false
        for byte in text.dropFirst().dropLast() {
            guard (0x20...0x7E).contains(byte) || isInternational && byte >= 0x80 else {
                return false
            }
            if !isEscaped, byte == UInt8(ascii: "\"") { return false }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        }
        return !isEscaped
    }
}
