// swift-format-ignore-file
// Of Dispatch what the library uses, with Darwin's signatures.
@_exported import Darwin

open class DispatchObject: @unchecked Sendable {}

public struct DispatchQoS: Sendable {
    public enum QoSClass: Sendable {
        case background, utility, `default`, userInitiated, userInteractive, unspecified
    }
    public static let unspecified = DispatchQoS()
}

public struct DispatchWorkItemFlags: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
}

open class DispatchGroup: DispatchObject, @unchecked Sendable {}

open class DispatchQueue: DispatchObject, @unchecked Sendable {
    public class var main: DispatchQueue { fatalError() }
    public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue { fatalError() }
    public convenience init(label: String) { fatalError() }
    public func async(
        group: DispatchGroup? = nil,
        qos: DispatchQoS = .unspecified,
        flags: DispatchWorkItemFlags = [],
        execute work: @escaping @Sendable @convention(block) () -> Void
    ) { fatalError() }
}

public enum DispatchTimeInterval: Equatable, Sendable {
    case seconds(Int)
    case milliseconds(Int)
    case microseconds(Int)
    case nanoseconds(Int)
    case never
}

public struct DispatchTime: Comparable, Sendable {
    public static func now() -> DispatchTime { fatalError() }
    public static func < (left: DispatchTime, right: DispatchTime) -> Bool { fatalError() }
}

public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { fatalError() }

public protocol DispatchSourceProtocol: AnyObject {
    typealias DispatchSourceHandler = @convention(block) () -> Void
    func setEventHandler(
        qos: DispatchQoS,
        flags: DispatchWorkItemFlags,
        handler: DispatchSourceHandler?
    )
    func activate()
    func cancel()
    func resume()
    func suspend()
}

extension DispatchSourceProtocol {
    public func setEventHandler(
        qos: DispatchQoS = .unspecified,
        flags: DispatchWorkItemFlags = [],
        handler: DispatchSourceHandler?
    ) { fatalError() }
}

public protocol DispatchSourceTimer: DispatchSourceProtocol {
    func schedule(
        deadline: DispatchTime,
        repeating interval: DispatchTimeInterval,
        leeway: DispatchTimeInterval
    )
}

extension DispatchSourceTimer {
    public func schedule(
        deadline: DispatchTime,
        repeating interval: DispatchTimeInterval = .never,
        leeway: DispatchTimeInterval = .nanoseconds(0)
    ) { fatalError() }
}

open class DispatchSource: DispatchObject, @unchecked Sendable {
    public struct TimerFlags: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public class func makeTimerSource(
        flags: TimerFlags = [],
        queue: DispatchQueue? = nil
    ) -> any DispatchSourceTimer { fatalError() }
}
