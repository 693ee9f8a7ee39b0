// URIs, and the pointers and templates in them.

extension FormatCheck {
    /// With a scheme, in ASCII; other bytes are written as `%` and two digits.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3986#appendix-A
    static func isURI(_ text: ArraySlice<UInt8>) -> Bool {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), colon > 0, isLetter(text[0]),
            text[..<colon].allSatisfy({ isLetter($0) || isDigit($0) || schemeSigns.contains($0) })
        else { return false }
        return isHierarchy(text[(colon + 1)...])
    }

    /// A URI, or what stands for one beside another.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3986#section-4.1
    static func isURIReference(_ text: ArraySlice<UInt8>) -> Bool {
        let ends = Array("/?#".utf8)
        let isRelative = !text.prefix { !ends.contains($0) }.contains(UInt8(ascii: ":"))
        return isRelative ? isHierarchy(text) : isURI(text)
    }

    /// What follows the scheme.
    private static func isHierarchy(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        for sign in "#?".utf8 {
            guard let place = rest.firstIndex(of: sign) else { continue }
            guard isMade(of: pathSigns + [UInt8(ascii: "?")], rest[(place + 1)...]) else {
                return false
            }
            rest = rest[..<place]
        }
        guard rest.starts(with: Array("//".utf8)) else { return isMade(of: pathSigns, rest) }
        rest.removeFirst(2)
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        return isAuthority(rest[..<end]) && isMade(of: pathSigns, rest[end...])
    }

    /// Whether every code point is one that an IRI may have instead of `%` and digits.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3987#section-2.2
    static func isInternational(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII
                || scalar.value >= 0xA0 && !(0xE000...0xF8FF).contains(scalar.value)
                    && !(0xFFF0...0xFFFF).contains(scalar.value) && scalar.value < 0xF0000
                    && !scalar.properties.isNoncharacterCodePoint
        }
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

    /// Whether it has only letters, digits, some signs, and `%` with two digits.
    ///
    /// Bytes that are not ASCII are left to ``isInternational(_:)``.
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
            guard isLetter(byte) || isDigit(byte) || byte >= 0x80 || signs.contains(byte) else {
                return false
            }
            index += 1
        }
        return true
    }

    // MARK: Templates

    /// A URI with variables in braces.
    ///
    /// https://www.rfc-editor.org/rfc/rfc6570#section-2
    static func isURITemplate(_ text: String) -> Bool {
        guard isInternational(text) else { return false }
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "{"):
                guard let end = rest.firstIndex(of: UInt8(ascii: "}")), isVariables(rest[..<end])
                else { return false }
                rest = rest[(end + 1)...]
            case UInt8(ascii: "%"):
                guard rest.count >= 2, rest.prefix(2).allSatisfy(isHexadecimal) else {
                    return false
                }
                rest.removeFirst(2)
            case 0...0x20, 0x7F: return false
            default: if templateExceptions.contains(byte) { return false }
            }
        }
        return true
    }

    private static let templateExceptions = Array("\"<>\\^`|}".utf8)

    private static func isVariables(_ text: ArraySlice<UInt8>) -> Bool {
        let hasOperator = text.first.map { Array("+#./;?&=,!@|".utf8).contains($0) } ?? false
        return text.dropFirst(hasOperator ? 1 : 0)
            .split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .allSatisfy(isVariable)
    }

    private static func isVariable(_ text: ArraySlice<UInt8>) -> Bool {
        var name = text
        if name.last == UInt8(ascii: "*") {
            name.removeLast()
        } else if let colon = name.firstIndex(of: UInt8(ascii: ":")) {
            let length = name[(colon + 1)...]
            guard (1...4).contains(length.count), length.allSatisfy(isDigit),
                length.first != UInt8(ascii: "0")
            else { return false }
            name = name[..<colon]
        }
        return name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            .allSatisfy { part in
                !part.isEmpty && isMade(of: [UInt8(ascii: "_")], part)
                    && part.allSatisfy { $0 < 0x80 }
            }
    }

    // MARK: JSON pointers

    /// The path of a value in a document of JSON.
    ///
    /// https://www.rfc-editor.org/rfc/rfc6901#section-3
    static func isJSONPointer(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.first.map({ $0 == UInt8(ascii: "/") }) ?? true else { return false }
        return text.indices.allSatisfy { index in
            text[index] != UInt8(ascii: "~")
                || index + 1 < text.endIndex && (0x30...0x31).contains(text[index + 1])
        }
    }

    /// Steps outwards, then a pointer or `#` for the name.
    ///
    /// https://json-schema.org/draft/2020-12/relative-json-pointer
    static func isRelativePointer(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        guard takeNumber(&rest) else { return false }
        if take("+", &rest) || take("-", &rest), !takeNumber(&rest) { return false }
        return rest.elementsEqual("#".utf8) || isJSONPointer(rest)
    }

    /// Takes a number without zeros before it.
    private static func takeNumber(_ rest: inout ArraySlice<UInt8>) -> Bool {
        let digits = rest.prefix(while: isDigit)
        rest = rest[digits.endIndex...]
        return !digits.isEmpty && (digits.count == 1 || digits.first != UInt8(ascii: "0"))
    }
}
