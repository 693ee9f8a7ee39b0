import StateEngine
import StateJSON

extension StateCodec where Value: Codable & Sendable {
    /// The form that a person types with `statectl set`.
    ///
    /// A value that encodes as one string, number or Boolean is stored bare: `dark`, `0.5`, `true`. `[UInt8]` is the bytes
    /// themselves. Everything else is JSON with sorted names. A nil Optional removes the entry; inside an
    /// Optional of an Optional everything is JSON, so that `.some(nil)` is `null` and a string has quotes.
    ///
    /// Read leniently, a number may have white space around it, as `echo` leaves it, a `+`, or zeros before it. A value
    /// whose `init(from:)` tries one scalar after another gets the first that the text can be.
    ///
    /// Foundation's `JSONDecoder` reads the JSON, but types that it treats apart are stored as they encode themselves:
    /// `Data` is an array of numbers. Arrays and objects may be nested 512 deep; a number must be finite.
    /// It is ``versioned(_:migrations:)`` of version 1.
    public static var standard: StateCodec { versioned(1) }

    /// The standard form of a value whose schema has changed: an older one is migrated when it is read, a newer one refused.
    ///
    /// From version 2 on the value carries its version, as the member `$version` of the object that it is, or beside the
    /// `$value` where it is none. Without that member it is version 1. Reading writes nothing: the entry is of the
    /// new version when the container is changed next. A chain of steps with a gap ends the process.
    ///
    /// - Parameters:
    ///   - version: The version of `Value`, 1 at least.
    ///   - migrations: The steps that lead to it, oldest first, without a gap. Values older than the first step are refused.
    /// - Returns: The codec.
    public static func versioned(
        _ version: Int,
        migrations: [StateMigration] = []
    ) -> StateCodec {
        let oldest = version - migrations.count
        precondition(
            oldest >= 1 && migrations.map(\.source) == Array(oldest..<version),
            "migrations to version \(version) come from \(migrations.map(\.source))"
        )
        // What the type is, is asked once, not with each value.
        let scalar = (Value.self as? any StoredScalar.Type)?.bareCodec
        let special: [any Sendable] = [
            scalar, StateCodec<[UInt8]>.bytes, StateCodec<[UInt8]?>.bytes,
        ]
        if version == 1, let codec = special.lazy.compactMap({ $0 as? StateCodec }).first {
            return codec
        }
        let form = StandardForm<Value>(version, migrations)
        return StateCodec(encode: form.encode, decodeStored: form.decode)
    }
}

extension StateCodec<[UInt8]> {
    fileprivate static var bytes: StateCodec {
        StateCodec { (value) throws(StateError) in
            value
        } decode: { (bytes) throws(StateError) in
            guard let bytes else { throw StateError(absent: Value.self) }
            return bytes
        }
    }
}

extension StateCodec<[UInt8]?> {
    fileprivate static var bytes: StateCodec { StateCodec(encode: { $0 }, decode: { $0 }) }
}

extension StoredScalar {
    /// Scalars without a coder: a tenth of the time.
    fileprivate static var bareCodec: any Sendable {
        let form = StandardForm<Self>(1, [])
        return StateCodec<Self> { (value) throws(StateError) in
            guard let bytes = value.bareBytes else { return try form.encode(value) }
            return bytes
        } decode: { (bytes) throws(StateError) in
            guard let bytes, let value = Self(bare: bytes) else {
                return try form.decode(bytes).value
            }
            return value
        }
    }

    private var bareBytes: [UInt8]? {
        guard let encoded else { return nil }
        if case .string(let text) = encoded { return Array(text.utf8) }
        return try? JSONWriter.text(encoded)
    }
}
