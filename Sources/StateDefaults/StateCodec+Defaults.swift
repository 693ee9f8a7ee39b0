import Foundation
import StateContainers
import StateEngine

/// The form of the defaults: their own types.
extension DefaultsBacking: EntryForm {
    func standard<Value: Codable & Sendable>(
        _ version: Int,
        _ migrations: [StateMigration]
    ) -> StateCodec<Value>? {
        // What has a schema is read by its version, which a property list has no place for.
        version == 1 ? .propertyList : nil
    }

    func custom<Value>(_ codec: StateCodec<Value>) -> StateCodec<Value> { codec.asText }
}

extension StateCodec {
    /// Stores the bytes of this codec: as a string if they are UTF-8, else as data.
    fileprivate var asText: StateCodec {
        var codec = StateCodec { (value) throws(StateError) in
            guard let bytes = try encode(value) else { return nil }
            let text = String(validating: bytes, as: UTF8.self)
            return try (text.map { PropertyList.string($0) } ?? .data(Data(bytes))).entry()
        } decodeStored: { (bytes) throws(StateError) in
            guard let bytes else { return try decodeStored(nil) }
            guard let text = PropertyList(entry: bytes)?.text else {
                throw StateError(.undecodable, "the default is neither a string nor data")
            }
            return try decodeStored(text)
        }
        codec.seal = seal
        return codec
    }
}

extension StateCodec where Value: Codable & Sendable {
    /// The form of the defaults' own types: numbers as numbers, dates as dates, and so on.
    ///
    /// A default that an earlier version stored as text, or that another program wrote as a number
    /// of another kind, is read as a person would type it.
    fileprivate static var propertyList: StateCodec {
        StateCodec { (value) throws(StateError) in
            try propertyList(of: value)?.entry()
        } decode: { (bytes) throws(StateError) in
            guard let bytes else { return try standard.decode(nil) }
            guard let list = PropertyList(entry: bytes) else {
                throw StateError(.undecodable, "the default is not a property list")
            }
            return try value(of: list, bytes)
        }
    }

    private static var isURL: Bool { Value.self == URL.self || Value.self == URL?.self }
    /// Bytes are data, not an array of numbers.
    private static var isBytes: Bool { Value.self == [UInt8].self || Value.self == [UInt8]?.self }

    /// Nil to remove the default.
    private static func propertyList(of value: Value) throws(StateError) -> PropertyList? {
        if (Value.self as? any AbsentValue.Type)?.isAbsent(value) == true { return nil }
        if let url = value as? URL { return try url.propertyList }
        if isBytes, let bytes = value as? [UInt8] { return .data(Data(bytes)) }
        do {
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            return PropertyList(entry: Array(try encoder.encode([value])))
        } catch let error as StateError {
            throw error
        } catch {
            throw StateError(.err, "the \(Value.self) cannot be stored as a default: \(error)")
        }
    }

    private static func value(
        of list: PropertyList,
        _ bytes: [UInt8]
    ) throws(StateError) -> Value {
        if isURL, let url = list.url as? Value { return url }
        if isBytes, let bytes = list.text as? Value { return bytes }
        do {
            let values = try PropertyListDecoder().decode([Value].self, from: Data(bytes))
            if let value = values.first { return value }
            throw StateError(.undecodable, "the default is not a property list")
        } catch {
            // What another program or an earlier version has written as text.
            if let text = list.text, let value = try? standard.decode(text) { return value }
            throw StateError(
                .undecodable,
                "the default is \(list.kind), which cannot be read as \(Value.self)"
            )
        }
    }
}

extension URL {
    /// As `UserDefaults` stores it: the path of a file, or an archive of another URL.
    fileprivate var propertyList: PropertyList {
        get throws(StateError) {
            isFileURL ? .string(path) : .data(try Archived.archive(self as NSURL))
        }
    }
}

extension PropertyList {
    /// As `UserDefaults` reads it; nil if it is not a URL.
    fileprivate var url: URL? {
        switch self {
        case .data(let data): (try? Archived<NSURL>.unarchive(data)).map { $0 as URL }
        // An earlier version stored the text of the URL.
        case .string(let text) where text.contains("://"): URL(string: text)
        case .string(let text):
            URL(fileURLWithPath: NSString(string: text).expandingTildeInPath)
        default: nil
        }
    }

    /// What it is, for messages.
    fileprivate var kind: String {
        switch self {
        case .bool(let flag): "the Boolean \(flag)"
        case .integer, .unsigned, .real: "the number \(object)"
        case .string: "a string"
        case .date: "a date"
        case .data(let data): "data of \(data.count) bytes"
        case .array(let elements): "an array of \(elements.count)"
        case .dictionary(let members): "a dictionary of \(members.count)"
        case .unknown(let type): "of type \(type)"
        }
    }
}
