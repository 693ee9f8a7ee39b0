// swift-format-ignore-file
// Of Foundation what StateDefaults uses, with Darwin's signatures.
@_exported import Darwin
@_exported import Dispatch

open class NSObject: Hashable {
    public init() {}
    public static func == (left: NSObject, right: NSObject) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}

open class NSCoder: NSObject {}

public protocol NSCoding {
    func encode(with coder: NSCoder)
    init?(coder: NSCoder)
}

public protocol NSSecureCoding: NSCoding {
    static var supportsSecureCoding: Bool { get }
}

open class NSNumber: NSObject, @unchecked Sendable {
    public init(value: Int64) { fatalError() }
    public init(value: UInt64) { fatalError() }
    public init(value: Double) { fatalError() }
    public var objCType: UnsafePointer<CChar> { fatalError() }
    public var boolValue: Bool { fatalError() }
    public var doubleValue: Double { fatalError() }
    public var int64Value: Int64 { fatalError() }
    public var uint64Value: UInt64 { fatalError() }
    public var stringValue: String { fatalError() }
}

open class NSString: NSObject, @unchecked Sendable {
    public init(string: String) { fatalError() }
    public var expandingTildeInPath: String { fatalError() }
}

open class NSURL: NSObject, NSSecureCoding, @unchecked Sendable {
    public static var supportsSecureCoding: Bool { true }
    public func encode(with coder: NSCoder) { fatalError() }
    public required init?(coder: NSCoder) { fatalError() }
}

public struct URL: Hashable, Codable, Sendable, _ObjectiveCBridgeable {
    public init?(string: String) { fatalError() }
    public init(fileURLWithPath path: String) { fatalError() }
    public var isFileURL: Bool { fatalError() }
    public var path: String { fatalError() }
    public func _bridgeToObjectiveC() -> NSURL { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ source: NSURL, result: inout URL?) {}
    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSURL,
        result: inout URL?
    ) -> Bool {
        fatalError()
    }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURL?) -> URL {
        fatalError()
    }
}

public struct Data: Hashable, Codable, Sendable, RandomAccessCollection {
    public init<Bytes: Sequence>(_ bytes: Bytes) where Bytes.Element == UInt8 { fatalError() }
    public var startIndex: Int { fatalError() }
    public var endIndex: Int { fatalError() }
    public subscript(index: Int) -> UInt8 { fatalError() }
}

public struct Date: Hashable, Codable, Sendable {
    public init() { fatalError() }
    public init(timeIntervalSinceReferenceDate: Double) { fatalError() }
    public var timeIntervalSinceReferenceDate: Double { fatalError() }
    public var timeIntervalSince1970: Double { fatalError() }
}

open class NSKeyedArchiver: NSCoder {
    public class func archivedData(
        withRootObject object: Any,
        requiringSecureCoding: Bool
    ) throws -> Data { fatalError() }
}

open class NSKeyedUnarchiver: NSCoder {
    public static func unarchivedObject<Decoded: NSObject & NSCoding>(
        ofClass type: Decoded.Type,
        from data: Data
    ) throws -> Decoded? { fatalError() }
}

open class PropertyListSerialization: NSObject {
    public enum PropertyListFormat: UInt, Sendable { case openStep, xml, binary }
    public struct ReadOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public typealias WriteOptions = Int
    public class func propertyList(
        from data: Data,
        options: ReadOptions = [],
        format: UnsafeMutablePointer<PropertyListFormat>?
    ) throws -> Any { fatalError() }
    public class func data(
        fromPropertyList list: Any,
        format: PropertyListFormat,
        options: WriteOptions
    ) throws -> Data { fatalError() }
}

open class PropertyListEncoder: @unchecked Sendable {
    public init() {}
    public var outputFormat: PropertyListSerialization.PropertyListFormat = .binary
    public func encode<Value: Encodable>(_ value: Value) throws -> Data { fatalError() }
}

open class PropertyListDecoder: @unchecked Sendable {
    public init() {}
    public func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        fatalError()
    }
}

open class ProcessInfo: NSObject, @unchecked Sendable {
    public class var processInfo: ProcessInfo { fatalError() }
    public var processName: String { fatalError() }
}

open class Bundle: NSObject, @unchecked Sendable {
    public class var main: Bundle { fatalError() }
    public var bundleIdentifier: String? { fatalError() }
}

open class UserDefaults: NSObject, @unchecked Sendable {
    public class var standard: UserDefaults { fatalError() }
    public init?(suiteName: String?) { fatalError() }
    @discardableResult
    public func synchronize() -> Bool { fatalError() }
    public func persistentDomain(forName name: String) -> [String: Any]? { fatalError() }
    public func set(_ value: Any?, forKey key: String) { fatalError() }
    public func removeObject(forKey key: String) { fatalError() }
}
