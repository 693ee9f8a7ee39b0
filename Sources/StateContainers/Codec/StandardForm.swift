import StateEngine
import StateJSON

/// How the standard codec stores a value.
struct StandardForm<Value: Codable & Sendable>: Sendable {
    /// The schema version to write.
    private let version: Int
    /// The steps that lead to this version, oldest first.
    private let migrations: [StateMigration]
    /// The type, if the value can be absent.
    private let optional: (any AbsentValue.Type)?
    /// Whether a scalar is stored bare, not as JSON.
    private let isBare: Bool
    /// Whether objects and arrays are written for people: over several lines.
    private let isIndented: Bool

    init(_ version: Int, _ migrations: [StateMigration], isIndented: Bool = false) {
        self.version = version
        self.migrations = migrations
        self.isIndented = isIndented
        optional = Value.self as? any AbsentValue.Type
        isBare = optional?.isNested != true
    }

    func encode(_ value: Value) throws(StateError) -> [UInt8]? {
        if optional?.isAbsent(value) == true { return nil }
        do {
            let encoder = ValueEncoder(at: nil)
            try encoder.encode(value)
            guard let encoded = encoder.value else {
                throw encoder.fault(value, "it encodes nothing")
            }
            return try text(of: StoredVersion.stamped(encoded.settled, version))
        } catch {
            throw StateError(unencodable: error, Value.self)
        }
    }

    private func text(of value: EncodedValue) throws(StateError) -> [UInt8] {
        if isBare, case .string(let text) = value { return Array(text.utf8) }
        guard isIndented else { return try JSONWriter.text(value) }
        switch value {
        case .array, .object: return try JSONWriter.text(value, isIndented: true) + [0x0A]
        default: return try JSONWriter.text(value)
        }
    }

    func decode(_ bytes: [UInt8]?) throws(StateError) -> StateCodec<Value>.Stored {
        guard let bytes else {
            guard let optional else { throw StateError(absent: Value.self) }
            return (optional.absent(as: Value.self), nil)
        }
        do {
            if version > 1 { return try decodeVersioned(bytes) }
            if isBare { return (try decodeBare(bytes), nil) }
            let document = try JSONDocument.read(bytes)
            try StoredVersion.check(StoredVersion.of(document), atMost: 1)
            return (try decode(document, 0), nil)
        } catch {
            throw StateError(undecodable: error, Value.self)
        }
    }

    private func decodeBare(_ bytes: [UInt8]) throws -> Value {
        let decoder = StoredDecoder(bytes, isPresent: optional != nil)
        let value = try decoder.decode(Value.self)
        try decoder.checkWasRead()
        return value
    }

    private func decode(_ document: JSONDocument, _ place: Int) throws -> Value {
        try ValueDecoder(document, place, at: nil, isPresent: optional != nil).decode(Value.self)
    }

    private func decodeVersioned(_ bytes: [UInt8]) throws -> StateCodec<Value>.Stored {
        guard bytes.first(where: { !JSONScanner.isSpace($0) }) == UInt8(ascii: "{") else {
            // A bare value is older than every version that is written.
            return (try migrated(JSONValue(stored: bytes), from: 1), 1)
        }
        let document = try JSONDocument.read(bytes)
        let found = try StoredVersion.of(document)
        try StoredVersion.check(found, atMost: version)
        let place = StoredVersion.value(of: document)
        if found == version {
            return (try decode(document, place), nil)
        }
        var value = JSONValue(document, place)
        if place == 0, case .object(var members) = value {
            members[StoredVersion.name] = nil
            value = .object(members)
        }
        return (try migrated(value, from: found), found)
    }

    private func migrated(_ value: JSONValue, from source: Int) throws -> Value {
        guard source >= version - migrations.count else {
            let oldest = version - migrations.count
            throw StateError(
                .undecodable,
                "the value has schema version \(source); "
                    + "this program migrates from version \(oldest)"
            )
        }
        var value = value
        for migration in migrations where migration.source >= source {
            do {
                try migration.step(&value)
            } catch {
                let step = "from version \(migration.source) to \(migration.source + 1)"
                throw StateError(.undecodable, "the migration \(step) fails: \(error)")
            }
        }
        let text = try value.text()
        switch value {
        case .null, .bool, .number:
            // What was stored bare may have been a string, or base64, that looks like a number.
            if isBare { return try decodeBare(text) }
        case .string, .array, .object: break
        }
        return try decode(JSONDocument.read(text), 0)
    }
}

/// An Optional: its nil removes the entry.
///
/// No Optional is cast to another one, because a cast could change the nesting depth of a nil.
package protocol AbsentValue: SendableMetatype {
    /// Whether this Optional wraps another Optional.
    static var isNested: Bool { get }
    /// The nil of this type.
    static func absent<Value>(as type: Value.Type) -> Value
    /// Whether a value of this type is nil.
    static func isAbsent<Value>(_ value: Value) -> Bool
}

extension Optional: AbsentValue {
    package static var isNested: Bool { Wrapped.self is any AbsentValue.Type }

    package static func absent<Value>(as type: Value.Type) -> Value {
        precondition(type == Self.self)
        return unsafeBitCast(Self.none, to: Value.self)
    }

    package static func isAbsent<Value>(_ value: Value) -> Bool {
        precondition(Value.self == Self.self)
        if case .none = unsafeBitCast(value, to: Self.self) { return true }
        return false
    }
}

extension JSONWriter {
    /// The JSON text of `value`.
    static func text(
        _ value: EncodedValue,
        isIndented: Bool = false
    ) throws(StateError) -> [UInt8] {
        var writer = JSONWriter(isIndented: isIndented)
        writer.append(value)
        return try writer.text()
    }
}

extension StateError {
    /// The error for a value of `type` that cannot be stored.
    init(unencodable error: any Error, _ type: any Any.Type) {
        if let error = error as? StateError {
            self = error
        } else if case .invalidValue(_, let context)? = error as? EncodingError {
            let place = StateError.place(context.codingPath)
            self.init(.err, "the \(type) cannot be stored: \(place)\(context.debugDescription)")
        } else {
            self.init(.err, "the \(type) cannot be stored: \(error)")
        }
    }

    /// The error for a missing entry.
    init(absent type: any Any.Type) {
        self.init(.undecodable, "no value is stored, and \(type) is not an Optional")
    }

    /// The error for bytes that are not a value of `type`.
    init(undecodable error: any Error, _ type: any Any.Type) {
        if let error = error as? StateError {
            self = error
            return
        }
        guard let failure = error as? DecodingError else {
            self.init(.undecodable, "the value cannot be read as \(type): \(error)")
            return
        }
        let sentence =
            switch failure {
            case .typeMismatch(_, let context), .valueNotFound(_, let context),
                .keyNotFound(_, let context), .dataCorrupted(let context):
                StateError.place(context.codingPath) + context.debugDescription
            @unknown default: "\(failure)"
            }
        self.init(.undecodable, "the value cannot be read as \(type): \(sentence)")
    }

    private static func place(_ path: [any CodingKey]) -> String {
        guard !path.isEmpty else { return "" }
        return "at '\(path.map(\.stringValue).joined(separator: "/"))', "
    }
}
