/// The name of a value: 1 to 1,024 bytes of UTF-8 without control characters, not ending in `/`.
///
/// `/` separates segments by convention: `audio/volume`.
public struct Key: Hashable, Sendable {
    /// The bytes of the key, which are valid.
    public let bytes: [UInt8]

    /// The longest key, in bytes.
    public static let maximumByteCount = 1_024

    /// Makes a key of `text`.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the key and the rule that it breaks.
    public init(_ text: String) throws(StateError) {
        try self.init(bytes: Array(text.utf8))
    }

    /// Makes a key of bytes that must be UTF-8.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the key and the rule that it breaks.
    public init(bytes: [UInt8]) throws(StateError) {
        if let fault = bytes.withUnsafeBytes({ Key.fault(of: $0) }) {
            throw bytes.withUnsafeBytes { fault.error(for: $0) }
        }
        self.bytes = bytes
    }

    /// Why bytes are not a valid key.
    public enum Fault: Sendable {
        /// No bytes.
        case isEmpty
        /// More bytes than ``Key/maximumByteCount``.
        case isTooLong
        /// Not UTF-8.
        case isNotUTF8
        /// A character of the Unicode category Cc.
        case hasControlCharacter
        /// The last byte is `/`, as in a prefix.
        case endsInSlash

        /// The error that names the key and the rule.
        public func error(for key: Bytes) -> StateError {
            let shown = StateError.quoted(key)
            let sentence =
                switch self {
                case .isEmpty: "a key has at least 1 byte"
                case .isTooLong:
                    "key \(shown) has \(key.count) bytes; the limit is \(Key.maximumByteCount)"
                case .isNotUTF8: "key \(shown) is not UTF-8"
                case .hasControlCharacter: "key \(shown) has a control character"
                case .endsInSlash:
                    "key \(shown) ends in '/', which is how a prefix is written, not a key"
                }
            return StateError(.err, sentence)
        }
    }

    /// The rule that `bytes` break; nil if they are a valid key.
    ///
    /// - Complexity: O(*n*); eight bytes at a time if they are ASCII.
    public static func fault(of bytes: Bytes) -> Fault? {
        guard bytes.count > 0 else { return .isEmpty }
        guard bytes.count <= maximumByteCount else { return .isTooLong }
        guard isPlainASCII(bytes) || isTextWithoutControls(bytes) else {
            return String(validating: bytes, as: UTF8.self) == nil
                ? .isNotUTF8 : .hasControlCharacter
        }
        return bytes[bytes.count - 1] == UInt8(ascii: "/") ? .endsInSlash : nil
    }

    /// Whether every byte is printable ASCII.
    private static func isPlainASCII(_ bytes: Bytes) -> Bool {
        guard bytes.count >= 8 else { return bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }
        let last = bytes.count - 8
        var index = 0
        while index < last {
            guard isPlainASCII(bytes, at: index) else { return false }
            index += 8
        }
        // These may overlap the eight before.
        return isPlainASCII(bytes, at: last)
    }

    /// The same for eight bytes.
    @inline(__always)
    private static func isPlainASCII(_ bytes: Bytes, at index: Int) -> Bool {
        let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        // A byte is below 0x20, 0x7F or above if one of these sets its high bit.
        let below = word &- 0x2020_2020_2020_2020
        let above = word &+ 0x0101_0101_0101_0101
        return (word | below | above) & 0x8080_8080_8080_8080 == 0
    }

    private static func isTextWithoutControls(_ bytes: Bytes) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self) else { return false }
        return !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension Key: Comparable {
    /// Byte order, which for UTF-8 is the order of code points.
    public static func < (left: Key, right: Key) -> Bool {
        left.bytes.withUnsafeBytes { mine in right.bytes.withUnsafeBytes { mine.precedes($0) } }
    }
}

extension Key: CustomStringConvertible, ExpressibleByStringLiteral {
    /// The key as text.
    public var description: String { String(decoding: bytes, as: UTF8.self) }

    /// A key in the source code; an invalid one ends the process with a message.
    public init(stringLiteral text: String) {
        do {
            try self.init(text)
        } catch {
            fatalError(error.message)
        }
    }
}

extension Key {
    /// A key whose bytes were checked before.
    package init(verified bytes: Bytes) { self.bytes = Array(bytes) }
}
