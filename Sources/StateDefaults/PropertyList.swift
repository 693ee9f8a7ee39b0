import Foundation
import StateEngine

/// A default as it is stored: a property list.
///
/// An entry of the keyspace of a suite is a binary property list with the default as its only
/// element, because Foundation reads and writes no numbers and strings at the top.
enum PropertyList: Hashable, Sendable {
    case bool(Bool)
    case integer(Int64)
    /// Above the largest `Int64`.
    case unsigned(UInt64)
    case real(Real)
    case string(String)
    /// Seconds since Foundation's reference date.
    case date(Real)
    case data(Data)
    case array([PropertyList])
    case dictionary([String: PropertyList])
    /// Of a type that property lists do not have: it cannot be read, and is not overwritten.
    case unknown(type: String)

    /// A number that equals itself, also if it is not a number: otherwise a suite that has one would
    /// always differ from what is known of it.
    struct Real: Hashable, Sendable {
        let value: Double

        static func == (left: Real, right: Real) -> Bool {
            left.value.bitPattern == right.value.bitPattern
        }

        func hash(into hasher: inout Hasher) { hasher.combine(value.bitPattern) }
    }

    // MARK: As Foundation has it

    init(_ value: Any) {
        // Foundation on Linux has Optionals in its lists, and takes the number 1 for a Bool.
        if let optional = value as? any OptionalValue, let wrapped = optional.wrappedValue {
            self.init(wrapped)
            return
        }
        switch value {
        case let flag as Bool where type(of: value) == Bool.self: self = .bool(flag)
        case let text as String: self = .string(text)
        case let date as Date: self = .date(Real(value: date.timeIntervalSinceReferenceDate))
        case let data as Data: self = .data(data)
        case let number as NSNumber: self.init(number)
        case let list as [Any]: self = .array(list.map { PropertyList($0) })
        case let members as [String: Any]:
            self = .dictionary(members.mapValues { PropertyList($0) })
        default: self = .unknown(type: "\(type(of: value))")
        }
    }

    private init(_ number: NSNumber) {
        switch String(cString: number.objCType) {
        case "c", "B": self = .bool(number.boolValue)
        case "f", "d": self = .real(Real(value: number.doubleValue))
        case "Q" where number.uint64Value > Int64.max: self = .unsigned(number.uint64Value)
        default: self = .integer(number.int64Value)
        }
    }

    /// The object to pass to `UserDefaults`.
    var object: Any {
        switch self {
        case .bool(let flag): flag
        case .integer(let number): NSNumber(value: number)
        case .unsigned(let number): NSNumber(value: number)
        case .real(let number): NSNumber(value: number.value)
        case .string(let text): text
        case .date(let date): Date(timeIntervalSinceReferenceDate: date.value)
        case .data(let data): data
        case .array(let elements): elements.map(\.object)
        case .dictionary(let members): members.mapValues(\.object)
        case .unknown(let type): preconditionFailure("a default of type \(type) was written")
        }
    }

    // MARK: As an entry

    /// Reads the bytes of an entry; nil if they are none.
    init?(entry bytes: [UInt8]) {
        let list = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
        guard let value = (list as? [Any])?.first else { return nil }
        self.init(value)
    }

    /// The bytes of an entry.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if Foundation cannot write it.
    func entry() throws(StateError) -> [UInt8] {
        guard isWritable else {
            throw StateError(
                .err,
                "the value cannot be stored as a default: it is not a property list, or has a date "
                    + "outside of the years 1 to 9999"
            )
        }
        do {
            let data = try PropertyListSerialization.data(
                fromPropertyList: [object],
                format: .binary,
                options: 0
            )
            return Array(data)
        } catch {
            throw StateError(.err, "the default cannot be written as a property list: \(error)")
        }
    }

    /// A scalar as a person would type it; nil for other values.
    var text: [UInt8]? {
        switch self {
        case .string(let text): Array(text.utf8)
        case .data(let data): Array(data)
        case .bool(let flag): Array("\(flag)".utf8)
        case .integer(let number): Array("\(number)".utf8)
        case .unsigned(let number): Array("\(number)".utf8)
        case .real(let number): Array(NSNumber(value: number.value).stringValue.utf8)
        case .date, .array, .dictionary, .unknown: nil
        }
    }

    /// Whether a file can have it.
    ///
    /// Foundation on Linux writes any date, but if it has no year of four digits, the file cannot
    /// be read again: all defaults of the suite would be lost.
    private var isWritable: Bool {
        switch self {
        case .unknown: false
        case .date(let date): PropertyList.dates.contains(date.value)
        case .array(let elements): elements.allSatisfy(\.isWritable)
        case .dictionary(let members): members.values.allSatisfy(\.isWritable)
        case .bool, .integer, .unsigned, .real, .string, .data: true
        }
    }

    /// From 0001-01-01 to 9999-12-31, in seconds since Foundation's reference date.
    private static let dates = -63_114_076_800.0..<252_455_616_000.0
}

/// An Optional of any type.
private protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    var wrappedValue: Any? { self.map { $0 as Any } }
}
