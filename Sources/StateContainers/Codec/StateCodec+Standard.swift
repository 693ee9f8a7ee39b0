import StateEngine
import StateJSON

extension StateCodec where Value: Codable & Sendable {
    /// The form that a person types with `statectl set`.
    ///
    /// A value that encodes as one string, number or Boolean is stored bare: `dark`, `0.5`, `true`.
    /// `[UInt8]` is stored as the bytes themselves. Everything else is JSON with sorted names. A
    /// nil Optional removes the entry.
    ///
    /// Foundation's types are stored as a person types them: a `Date` as ISO 8601 in UTC, such as
    /// `2026-11-29T07:51:20Z`, with as many fraction digits as give the same `Double` back; `Data`
    /// as base64; a `Decimal` as a number with all its digits; a `URL` as its absolute text. They
    /// are bare, too, and inside of JSON they are strings, a `Decimal` a number. A date must be in
    /// the years 0000 to 9999.
    ///
    /// An Optional of an Optional is always stored as JSON, so `.some(nil)` is `null` and a string
    /// has quotes. As a member or element of another value, `.some(nil)` comes back as nil.
    ///
    /// In the files of a ``StateDirectory``, an object or an array has a line for each element, and
    /// a line break at its end.
    ///
    /// Reading is lenient: a number may have white space around it, as `echo` leaves it, a `+`, or
    /// leading zeros; a date may have an offset from UTC, a space in place of its `T`, and lower
    /// case; base64 may have line breaks and no padding; a `Decimal` may be in quotes. If an
    /// `init(from:)` tries one scalar type after another, it gets the first that the text can be
    /// read as.
    ///
    /// Foundation's `JSONDecoder` can read the JSON; dates without fraction by its strategy
    /// `.iso8601`. Arrays and objects may be nested 512 deep. A number must be finite. This codec is
    /// ``versioned(_:migrations:)`` with version 1.
    public static var standard: StateCodec { versioned(1) }

    /// The standard form of a value whose schema has changed.
    ///
    /// An older value is migrated when it is read; a newer one is refused. From version 2, the
    /// stored value carries its version: an object has the member `$version`; any other value is
    /// wrapped in an object as `$value`, with `$version` beside it. A value without `$version` has
    /// version 1. Reading writes nothing: the entry gets the new version with the container's next
    /// change.
    ///
    /// - Precondition: The migrations start at consecutive versions, and the last leads to
    ///   `version`.
    /// - Parameters:
    ///   - version: The version of `Value`, at least 1.
    ///   - migrations: The steps that lead to it, oldest first. Values older than the first step
    ///     are refused.
    /// - Returns: The codec.
    public static func versioned(
        _ version: Int,
        migrations: [StateMigration] = []
    ) -> StateCodec {
        let oldest = version - migrations.count
        guard oldest >= 1 && migrations.map(\.source) == Array(oldest..<version) else {
            fatalError(
                "migrations to version \(version) have a gap: they start at \(migrations.map(\.source))"
            )
        }
        // The type is inspected once here, not for each value.
        var codec = version == 1 ? bare ?? standard(version, []) : standard(version, migrations)
        codec.standard = { form in form.standard(version, migrations) }
        return codec
    }

    private static func standard(_ version: Int, _ migrations: [StateMigration]) -> StateCodec {
        let form = StandardForm<Value>(version, migrations)
        return StateCodec(encode: form.encode, decodeStored: form.decode)
    }

    /// The codec of a value that is written without a coder; nil for other values.
    static var bare: StateCodec? {
        let scalar = (Value.self as? any StoredScalar.Type)?.bareCodec
        let special: [any Sendable] = [
            scalar, StateCodec<[UInt8]>.bytes, StateCodec<[UInt8]?>.bytes,
        ]
        return special.lazy.compactMap { $0 as? StateCodec }.first
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
    /// Scalars without a coder: this takes a tenth of the time.
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
