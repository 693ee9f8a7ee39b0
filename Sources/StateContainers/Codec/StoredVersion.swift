import StateEngine
import StateJSON

/// Where a stored value carries its schema version: in a member of the object that it is.
///
/// `{"$version":2,"theme":"dark"}`; any other value is wrapped, `{"$value":"dark","$version":2}`.
/// Without the member the version is 1, which covers values stored before versions existed. A
/// separate key beside the value was rejected: two entries can get out of step.
enum StoredVersion {
    static let name = "$version"
    static let valueName = "$value"

    /// The version in the object at the root of `document`.
    static func of(_ document: JSONDocument) throws -> Int {
        guard let place = member(name, of: document) else { return 1 }
        guard let version = Int(document.tokens[place], in: document), version >= 1 else {
            let found = "expected a version, 1 or more, found \(document.description(of: place))"
            throw DecodingError.dataCorrupted(.init([PlaceKey(stringValue: name)], found))
        }
        return version
    }

    /// The place of the value in a `document` that carries a version.
    static func value(of document: JSONDocument) -> Int {
        member(name, of: document) == nil ? 0 : member(valueName, of: document) ?? 0
    }

    static func check(_ found: Int, atMost known: Int) throws(StateError) {
        guard found <= known else {
            throw StateError(
                .newerFormat,
                "the value has schema version \(found); this program supports up to \(known)"
            )
        }
    }

    /// `value` with its version; version 1 is not written.
    static func stamped(_ value: EncodedValue, _ version: Int) throws -> EncodedValue {
        if case .object(let object) = value {
            for reserved in version > 1 ? [name, valueName] : [name]
            where object.member(reserved) != nil {
                let context = EncodingError.Context(
                    codingPath: [PlaceKey(stringValue: reserved)],
                    debugDescription: "'\(reserved)' is reserved for the schema version"
                )
                throw EncodingError.invalidValue(reserved, context)
            }
        }
        guard version > 1 else { return value }
        guard case .object(let object) = value else {
            let object = EncodedObject()
            object.members = [(valueName, value), (name, .integer(Int64(version)))]
            return .object(object)
        }
        object.members.append((name, .integer(Int64(version))))
        return value
    }

    private static func member(_ name: String, of document: JSONDocument) -> Int? {
        document.tokens[0].kind == .object ? document.member(name, of: 0) : nil
    }
}
