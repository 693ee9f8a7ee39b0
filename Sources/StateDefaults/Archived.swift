public import Foundation
import StateEngine

/// An object that only `NSCoding` can store, as the value of a container: its default is the data
/// of an `NSKeyedArchiver`, as other programs expect it.
///
/// ```swift
/// let format = try UserDefaultsState<Archived<NSLocale>?>(nil, key: "format")
/// try format ~> Archived(NSLocale(localeIdentifier: "de_DE"))
/// ```
///
/// Only secure coding is used: data that holds an object of another class is refused.
///
/// The object must not change after it was passed on: the proof of `@unchecked Sendable`.
public struct Archived<Object: NSObject & NSSecureCoding>: Codable, Hashable, @unchecked Sendable {
    /// The object.
    public let object: Object

    /// Wraps an object that nobody changes any more.
    public init(_ object: Object) { self.object = object }

    /// Reads the data of an archive.
    ///
    /// - Throws: `DecodingError` if it is not an archive, or has an object of another class.
    public init(from decoder: any Decoder) throws {
        object = try Archived.unarchive(try decoder.singleValueContainer().decode(Data.self))
    }

    /// Writes the data of an archive.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if the object cannot be archived.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(try Archived.archive(object))
    }

    static func archive(_ object: Object) throws(StateError) -> Data {
        do {
            return try NSKeyedArchiver.archivedData(
                withRootObject: object,
                requiringSecureCoding: true
            )
        } catch {
            throw StateError(.err, "the \(Object.self) cannot be archived: \(error)")
        }
    }

    static func unarchive(_ data: Data) throws(StateError) -> Object {
        if let object = try? NSKeyedUnarchiver.unarchivedObject(ofClass: Object.self, from: data) {
            return object
        }
        throw StateError(.undecodable, "the data is not an archive of \(Object.self)")
    }
}
