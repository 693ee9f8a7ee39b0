import StateContainers

/// A secret member of a value that is otherwise readable.
///
/// ```swift
/// struct Account: Codable, Sendable {
///     var user = "ada"
///     @Redacted var password = ""
/// }
/// ```
///
/// It is `•••` in descriptions and mirrors. It can only be encoded by a codec that seals the value:
/// `StateCodec.sealed(with:for:)`.
@propertyWrapper
public struct Redacted<Value: Codable & Sendable>: Sendable {
    /// The value.
    public var wrappedValue: Value

    /// Hides a value.
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

extension Redacted: Equatable where Value: Equatable {}
extension Redacted: Hashable where Value: Hashable {}

extension Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `•••`.
    public var description: String { "•••" }
    /// `•••`.
    public var debugDescription: String { "•••" }
    /// Nothing.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension Redacted: Codable {
    /// Reads the value.
    public init(from decoder: any Decoder) throws {
        wrappedValue = try decoder.singleValueContainer().decode(Value.self)
    }

    /// Writes the value, if what is encoded will be sealed.
    ///
    /// - Throws: `EncodingError` outside of a sealing codec: the value would be readable.
    public func encode(to encoder: any Encoder) throws {
        try Sealing.checkSealed("•••", encoder)
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
