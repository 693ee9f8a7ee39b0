internal import CCrypto
import Synchronization

/// Bytes that nobody shall see: a password, a token.
///
/// They are never part of a description, a mirror or an error, and their memory is overwritten when
/// the last reference is released. Copies that a program makes of them are its own to overwrite.
///
/// The bytes are constant until `deinit`: the proof of `@unchecked Sendable`.
public final class Secret: @unchecked Sendable {
    private let bytes: UnsafeMutableRawBufferPointer

    /// Takes a copy of `bytes`.
    public init(_ bytes: some Collection<UInt8>) {
        self.bytes = .allocate(byteCount: bytes.count, alignment: 1)
        self.bytes.copyBytes(from: bytes)
    }

    /// Takes the UTF-8 of `text`.
    public convenience init(_ text: String) { self.init(text.utf8) }

    deinit {
        bytes.wipe()
        bytes.deallocate()
    }

    /// How many bytes there are.
    public var count: Int { bytes.count }

    /// Reads the bytes in place; they must not be used after `body` has returned.
    public func withBytes<R, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(bytes))
    }

    /// The bytes as text; a copy that is not overwritten.
    public var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}

extension Secret: Equatable {
    /// Whether both have the same bytes; takes the same time wherever they differ.
    public static func == (left: Secret, right: Secret) -> Bool {
        left.count == right.count
            && CRYPTO_memcmp(left.bytes.baseAddress, right.bytes.baseAddress, left.count) == 0
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `•••`.
    public var description: String { "•••" }
    /// `•••`.
    public var debugDescription: String { "•••" }
    /// Nothing.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension Secret: Codable {
    /// Reads the bytes from text in base64.
    ///
    /// - Throws: `DecodingError`, without the text.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let bytes = Base64.decoded(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no base64")
        }
        self.init(bytes)
    }

    /// Writes the bytes as text in base64, if what is encoded will be sealed.
    ///
    /// - Throws: `EncodingError` outside of a sealing codec: the secret would be readable.
    public func encode(to encoder: any Encoder) throws {
        try Sealing.checkSealed(self, encoder)
        var container = encoder.singleValueContainer()
        try container.encode(withBytes { Base64.encoded($0) })
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Overwrites the bytes, although nobody reads them afterwards.
    func wipe() { OPENSSL_cleanse(baseAddress, count) }
}

extension [UInt8] {
    mutating func wipe() { withUnsafeMutableBytes { $0.wipe() } }
}

/// Bytes as text: RFC 4648, with padding.
enum Base64 {
    static func encoded(_ bytes: UnsafeRawBufferPointer) -> String {
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = text.withUnsafeMutableBufferPointer { text in
            EVP_EncodeBlock(
                text.baseAddress,
                bytes.assumingMemoryBound(to: UInt8.self).baseAddress,
                Int32(bytes.count)
            )
        }
        defer { text.wipe() }
        return String(decoding: text.prefix(Int(count)), as: UTF8.self)
    }

    static func decoded(_ text: String) -> [UInt8]? {
        let source = Array(text.utf8)
        guard source.count % 4 == 0 else { return nil }
        let padding = source.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding <= 2 else { return nil }
        var bytes = [UInt8](repeating: 0, count: source.count / 4 * 3)
        let count = bytes.withUnsafeMutableBufferPointer { bytes in
            source.withUnsafeBufferPointer {
                EVP_DecodeBlock(bytes.baseAddress, $0.baseAddress, Int32($0.count))
            }
        }
        guard count >= 0 else { return nil }
        return Array(bytes.prefix(Int(count) - padding))
    }
}
