import StateEngine
import StateJSON

/// The format of a string.
enum SchemaFormat: String, CaseIterable, Sendable {
    case email
    case internationalEmail = "idn-email"
    case dateTime = "date-time"
    case date, time, duration, hostname
    case internationalHostname = "idn-hostname"
    case ipv4, ipv6, uri
    case uriReference = "uri-reference"
    case iri
    case iriReference = "iri-reference"
    case uriTemplate = "uri-template"
    case uuid
    case jsonPointer = "json-pointer"
    case relativePointer = "relative-json-pointer"
    case regex

    /// What it is, for messages.
    private var noun: String {
        switch self {
        case .email, .internationalEmail: "an e-mail address"
        case .dateTime: "a date and time as in RFC 3339, such as 2026-11-21T12:00:00Z"
        case .date: "a date such as 2026-11-21"
        case .time: "a time with its offset from UTC, such as 12:00:00Z"
        case .duration: "a duration of ISO 8601, such as P1DT12H"
        case .hostname, .internationalHostname: "a host name"
        case .ipv4: "an IPv4 address"
        case .ipv6: "an IPv6 address"
        case .uri: "a URI with a scheme"
        case .uriReference: "a URI or a relative reference"
        case .iri: "an IRI with a scheme"
        case .iriReference: "an IRI or a relative reference"
        case .uriTemplate: "a URI template"
        case .uuid: "a UUID"
        case .jsonPointer: "a JSON pointer, such as /a/0"
        case .relativePointer: "a relative JSON pointer, such as 1/a"
        case .regex: "a regular expression of ECMA 262"
        }
    }

    /// - Complexity: O(*n*)
    func isMet(by text: String) -> Bool {
        let bytes = Array(text.utf8)[...]
        let isASCII = bytes.allSatisfy { $0 < 0x80 }
        return switch self {
        case .email: FormatCheck.isEmail(bytes, isInternational: false)
        case .internationalEmail: FormatCheck.isEmail(bytes, isInternational: true)
        case .dateTime: FormatCheck.isDateTime(bytes)
        case .date: FormatCheck.isDate(bytes)
        case .time: FormatCheck.isTime(bytes)
        case .duration: FormatCheck.isDuration(bytes)
        case .hostname: FormatCheck.isHostname(bytes)
        case .internationalHostname: InternationalName.isHostname(text)
        case .ipv4: FormatCheck.isIPv4(bytes)
        case .ipv6: FormatCheck.isIPv6(bytes)
        case .uri: isASCII && FormatCheck.isURI(bytes)
        case .uriReference: isASCII && FormatCheck.isURIReference(bytes)
        case .iri: FormatCheck.isInternational(text) && FormatCheck.isURI(bytes)
        case .iriReference: FormatCheck.isInternational(text) && FormatCheck.isURIReference(bytes)
        case .uriTemplate: FormatCheck.isURITemplate(text)
        case .uuid: FormatCheck.isUUID(bytes)
        case .jsonPointer: FormatCheck.isJSONPointer(bytes)
        case .relativePointer: FormatCheck.isRelativePointer(bytes)
        case .regex: RegularExpression.isExpression(text)
        }
    }

    func issue(of text: String) -> ValidationIssue? {
        guard !isMet(by: text) else { return nil }
        let shown = StateError.quoted(text.utf8)
        return ValidationIssue(rule: "format \(rawValue)", message: "\(shown) is not \(noun)")
    }
}

/// The checks of formats, by their RFCs.
enum FormatCheck {
    static func take(_ character: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    static func isHexadecimal(_ byte: UInt8) -> Bool {
        isDigit(byte) || (byte | 0x20) &- 0x61 < 6
    }

    static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }
}
