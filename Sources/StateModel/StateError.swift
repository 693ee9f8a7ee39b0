/// An error: a code for programs and a sentence for people.
public struct StateError: Error, Hashable, Sendable {
    /// The first word of an error on the wire.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The word.
        public let description: String

        /// A custom code; upper case by convention.
        public init(_ word: String) { description = word }

        /// An invalid request: syntax, arity, an illegal key.
        public static let invalidRequest = Code("ERR")
        /// The same by its word on the wire.
        package static let err = invalidRequest
        /// A condition failed; the message names the current revision.
        public static let conflict = Code("CONFLICT")
        /// A value, transaction or reply beyond its limit.
        public static let tooBig = Code("TOOBIG")
        /// A quota is used up.
        public static let limit = Code("LIMIT")
        /// The disk is full; nothing was committed.
        public static let noSpace = Code("NOSPACE")
        /// Writes are refused; the message says whether an outcome is unknown.
        public static let readOnly = Code("READONLY")
        /// A rule's type or validation refused the value.
        public static let rejected = Code("REJECTED")
        /// The caller lacks permission.
        public static let noPermission = Code("NOPERM")
        /// The history no longer reaches back to the requested revision.
        public static let compacted = Code("COMPACTED")
        /// A transaction was undone.
        public static let executionAborted = Code("EXECABORT")
        /// The copy of a cluster may be behind, and its rule refuses to serve it then.
        public static let stale = Code("STALE")
        /// The cluster of the key cannot be reached: nothing was changed.
        public static let away = Code("AWAY")
        /// A protocol version that is not supported.
        public static let noProtocol = Code("NOPROTO")
        /// A store that another process owns; never on the wire.
        public static let locked = Code("LOCKED")
        /// A store whose bytes are damaged; never on the wire.
        public static let corrupt = Code("CORRUPT")
        /// A store of a newer format; never on the wire.
        public static let newerFormat = Code("NEWERFORMAT")
        /// A store that cannot be opened; never on the wire.
        public static let storage = Code("STORAGE")
        /// The daemon does not answer; nothing was sent.
        public static let unreachable = Code("UNREACHABLE")
        /// 1,000 changes in a row, each made in response to the one before; never on the wire.
        public static let feedbackLoop = Code("FEEDBACKLOOP")
        /// Something did not happen in time; never on the wire.
        public static let timedOut = Code("TIMEDOUT")
        /// A transaction over containers that are neither all of one keyspace nor all in memory;
        /// never on the wire.
        public static let mixedKeyspaces = Code("MIXEDKEYSPACES")
        /// Another container already uses the key with a different type; never on the wire.
        public static let typeMismatch = Code("TYPEMISMATCH")
        /// The connection was lost after a write was sent.
        public static let outcomeUnknown = Code("OUTCOMEUNKNOWN")
        /// A stored value that does not decode as its container's type; never on the wire.
        public static let undecodable = Code("UNDECODABLE")
    }

    /// The kind of failure.
    public let code: Code
    /// One sentence with the values in it, safe for a terminal and a log; control characters are
    /// written as `\xNN`.
    public let message: String
    /// The problems of a rejected value; empty for every other error.
    public let issues: [ValidationIssue]

    /// Makes an error.
    public init(_ code: Code, _ message: String) {
        self.init(code, message, issues: [])
    }

    package init(_ code: Code, _ message: String, issues: [ValidationIssue]) {
        self.code = code
        self.message = StateError.printable(message)
        self.issues = issues
    }

    /// The same failure, of the value of `key`.
    package func naming(_ key: Key) -> StateError {
        StateError(code, "key '\(key)': \(message)", issues: issues)
    }

    /// Whether the request may or may not have taken effect: a commit whose sync failed.
    package var isOutcomeUnknown: Bool {
        code == .readOnly && message.hasPrefix(StateError.unknownOutcome)
    }

    /// The start of the message of such an error.
    package static let unknownOutcome = "outcome unknown"

    /// Bytes as shown in a message: quoted, at most `limit` of them, with invalid UTF-8 and
    /// characters that may mislead a terminal as `\xNN`.
    public static func quoted(_ bytes: Bytes, upTo limit: Int = 64) -> String {
        var shown = "'"
        var parser = Unicode.UTF8.ForwardParser()
        var source = bytes.makeIterator()
        var end = 0
        while true {
            var scalar: Unicode.Scalar?
            let byteCount: Int
            switch parser.parseScalar(from: &source) {
            case .emptyInput: return shown + "'"
            case .error(let length): byteCount = length
            case .valid(let encoded):
                byteCount = encoded.count
                scalar = Unicode.UTF8.decode(encoded)
            }
            guard end + byteCount <= limit else { return shown + "…'" }
            if let scalar, !scalar.misleads {
                shown.unicodeScalars.append(scalar)
            } else {
                shown.appendEscaped(bytes.slice(end, end + byteCount))
            }
            end += byteCount
        }
    }

    /// Text that is safe on a terminal and in a log, whoever it comes from: control characters,
    /// line ends, and characters that are not seen or change the direction of writing are shown as
    /// `\xNN`, byte by byte.
    ///
    /// - Complexity: O(*n*) in the bytes of the text.
    package static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.misleads) else { return text }
        var shown = ""
        for scalar in text.unicodeScalars {
            if scalar.misleads {
                shown.appendEscaped(
                    Unicode.UTF8.encode(scalar) ?? Unicode.UTF8.encodedReplacementCharacter
                )
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}

extension Unicode.Scalar {
    /// Whether it changes how the text around it is shown, or is not seen at all: a control
    /// character (C0, delete, C1), the end of a line or paragraph, or one that Unicode lets a program
    /// leave out (`Default_Ignorable_Code_Point`), such as those that change the direction of
    /// writing.
    ///
    /// Also U+200C and U+200D, which join letters and emoji, and variation selectors: two names that
    /// differ in them alone look the same. What is escaped can be read back; what is shown as it is
    /// cannot be told from another name.
    /// https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt
    package var misleads: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029: true
        case 0xAD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B...0x180F: true
        case 0x200B...0x200F, 0x202A...0x202E, 0x2060...0x206F, 0x3164, 0xFE00...0xFE0F: true
        case 0xFEFF, 0xFFA0, 0xFFF0...0xFFFB, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A: true
        case 0xE0000...0xE0FFF: true
        default: false
        }
    }
}

extension String {
    fileprivate mutating func appendEscaped(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            self += byte < 16 ? "\\x0" : "\\x"
            self += String(byte, radix: 16, uppercase: true)
        }
    }
}

extension StateError: CustomStringConvertible {
    /// `CODE sentence`, as on the wire.
    public var description: String { "\(code) \(message)" }
}
