import StateEngine

/// The format of a string.
enum SchemaFormat: String, CaseIterable, Sendable {
    case email
    case dateTime = "date-time"
    case uri, uuid, ipv4, ipv6

    /// The noun for messages, and the check; e-mail addresses have their own check.
    private var form: (noun: String, isMet: (ArraySlice<UInt8>) -> Bool)? {
        switch self {
        case .email: nil
        case .dateTime:
            ("a date and time as in RFC 3339, such as 2026-11-21T12:00:00Z", FormatCheck.isDateTime)
        case .uri: ("a URI with a scheme", FormatCheck.isURI)
        case .uuid: ("a UUID", FormatCheck.isUUID)
        case .ipv4: ("an IPv4 address", FormatCheck.isIPv4)
        case .ipv6: ("an IPv6 address", FormatCheck.isIPv6)
        }
    }

    func issue(of text: String) -> ValidationIssue? {
        guard let form else { return ValidationCheck.email(text) }
        let bytes = Array(text.utf8)
        guard !form.isMet(bytes[...]) else { return nil }
        let shown = bytes.withUnsafeBytes { StateError.quoted($0) }
        return ValidationIssue(
            rule: "format \(rawValue)",
            message: "\(shown) is not \(form.noun)"
        )
    }
}

/// The checks of formats, by their RFCs.
enum FormatCheck {
    // MARK: Date and time

    /// A date and a time of day with their offset from UTC.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3339#section-5.6
    static func isDateTime(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        guard let year = digits(4, &rest), take("-", &rest), let month = digits(2, &rest),
            take("-", &rest), let day = digits(2, &rest), (1...12).contains(month),
            (1...dayCount(year, month)).contains(day), take("T", &rest) || take("t", &rest),
            let hour = digits(2, &rest), take(":", &rest), let minute = digits(2, &rest),
            take(":", &rest), let second = digits(2, &rest), hour < 24, minute < 60, second < 61
        else { return false }
        if take(".", &rest) {
            let fraction = rest.prefix(while: isDigit)
            guard !fraction.isEmpty else { return false }
            rest.removeFirst(fraction.count)
        }
        guard let offset = minutesOfOffset(&rest), rest.isEmpty else { return false }
        // A leap second ends a day of UTC.
        let minuteOfDay = (hour * 60 + minute - offset + 2_880) % 1_440
        return second < 60 || minuteOfDay == 1_439
    }

    private static func minutesOfOffset(_ rest: inout ArraySlice<UInt8>) -> Int? {
        if take("Z", &rest) || take("z", &rest) { return 0 }
        let isNegative = take("-", &rest)
        guard isNegative || take("+", &rest), let hours = digits(2, &rest), take(":", &rest),
            let minutes = digits(2, &rest), hours < 24, minutes < 60
        else { return nil }
        return (hours * 60 + minutes) * (isNegative ? -1 : 1)
    }

    private static func dayCount(_ year: Int, _ month: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    private static func digits(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy(isDigit) else { return nil }
        rest.removeFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func take(_ character: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        isDigit(byte) || (byte | 0x20) &- 0x61 < 6
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    // MARK: UUID

    /// 32 hexadecimal digits in five groups.
    ///
    /// https://www.rfc-editor.org/rfc/rfc9562#section-4
    static func isUUID(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count == 36 else { return false }
        return text.enumerated().allSatisfy { index, byte in
            [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : isHexadecimal(byte)
        }
    }

    // MARK: Addresses

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

    // MARK: URI

    /// With a scheme, in ASCII; other bytes are written as `%` and two digits.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3986#appendix-A
    static func isURI(_ text: ArraySlice<UInt8>) -> Bool {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), colon > 0, isLetter(text[0]),
            text[..<colon].allSatisfy({ isLetter($0) || isDigit($0) || schemeSigns.contains($0) })
        else { return false }
        var rest = text[(colon + 1)...]
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            guard isMade(of: pathSigns + [UInt8(ascii: "?")], rest[(hash + 1)...]) else {
                return false
            }
            rest = rest[..<hash]
        }
        if let question = rest.firstIndex(of: UInt8(ascii: "?")) {
            guard isMade(of: pathSigns + [UInt8(ascii: "?")], rest[(question + 1)...]) else {
                return false
            }
            rest = rest[..<question]
        }
        guard rest.starts(with: Array("//".utf8)) else { return isMade(of: pathSigns, rest) }
        rest.removeFirst(2)
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        return isAuthority(rest[..<end]) && isMade(of: pathSigns, rest[end...])
    }

    private static let schemeSigns = Array("+-.".utf8)
    private static let hostSigns = Array("-._~!$&'()*+,;=".utf8)
    private static let pathSigns = hostSigns + Array(":@/".utf8)

    private static func isAuthority(_ text: ArraySlice<UInt8>) -> Bool {
        var host = text
        if let at = host.lastIndex(of: UInt8(ascii: "@")) {
            guard isMade(of: hostSigns + [UInt8(ascii: ":")], host[..<at]) else { return false }
            host = host[(at + 1)...]
        }
        var port = host[host.endIndex...]
        if host.first == UInt8(ascii: "[") {
            guard let end = host.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let literal = host[(host.startIndex + 1)..<end]
            guard isIPv6(literal) || isFutureAddress(literal) else { return false }
            port = host[(end + 1)...]
        } else {
            let colon = host.lastIndex(of: UInt8(ascii: ":")) ?? host.endIndex
            guard isMade(of: hostSigns, host[..<colon]) else { return false }
            port = host[colon...]
        }
        guard let first = port.first else { return true }
        return first == UInt8(ascii: ":") && port.dropFirst().allSatisfy(isDigit)
    }

    private static func isFutureAddress(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, first | 0x20 == UInt8(ascii: "v"),
            let dot = text.firstIndex(of: UInt8(ascii: "."))
        else { return false }
        let version = text[(text.startIndex + 1)..<dot]
        let rest = text[(dot + 1)...]
        return !version.isEmpty && version.allSatisfy(isHexadecimal) && !rest.isEmpty
            && !rest.contains(UInt8(ascii: "%"))
            && isMade(of: hostSigns + [UInt8(ascii: ":")], rest)
    }

    private static func isMade(of signs: [UInt8], _ text: ArraySlice<UInt8>) -> Bool {
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            if byte == UInt8(ascii: "%") {
                guard index + 2 < text.endIndex, isHexadecimal(text[index + 1]),
                    isHexadecimal(text[index + 2])
                else { return false }
                index += 3
                continue
            }
            guard isLetter(byte) || isDigit(byte) || signs.contains(byte) else { return false }
            index += 1
        }
        return true
    }
}
