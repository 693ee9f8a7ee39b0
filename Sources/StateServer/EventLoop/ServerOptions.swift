import Glibc
public import StateEngine
import StateWire

/// The limits and settings of the server.
public struct ServerOptions: Sendable {
    /// Clients at once.
    public var clientCount = 10_000
    /// Input that is not parsed yet, of all clients, in bytes.
    public var inputByteCount = 256 << 20
    /// How long a command may take to arrive, from its first byte to its last, in milliseconds; 0:
    /// no limit.
    public var frameMilliseconds: Int64 = 60_000
    /// The longest rest of a user without admin rights after commands that made others wait, while
    /// others are served, in milliseconds; 0: none.
    public var restMilliseconds: Int64 = 500
    /// How long after a start connections of the last run may claim their keys, in milliseconds.
    public var graceMilliseconds: Int64 = 10_000
    /// How often the complete store is read and checked, in milliseconds; 0: never.
    public var checkMilliseconds: Int64 = 86_400_000
    /// Memory of all clients together, in bytes: input, output, and reads of the history.
    public var memoryByteCount = 512 << 20
    /// Output that waits for one client, in bytes; a single reply or push may exceed it.
    public var outputByteCount = 8 << 20
    /// One reply, in bytes.
    public var replyByteCount = 256 << 20
    /// One reply that must be written at one moment, in bytes, besides one value.
    ///
    /// Nobody else is served meanwhile: 32 MiB take about 15 ms.
    package var momentByteCount = 32 << 20
    /// Keys that one commit or command of a client without admin rights may change, or visit in a
    /// transaction.
    ///
    /// Nobody else is served meanwhile: 10,000 keys take about 20 ms.
    public var stepCount = 10_000
    /// Globs of all watches and subscriptions of a user without admin rights: each is compared with
    /// every written key.
    public var globCount = 100
    /// Keys that clients with CLIENT TRACKING have read, counted once for each client.
    public var trackedKeyCount = 1_000_000
    /// Watches of one client.
    public var watchCount = 1_000
    /// Patterns of all watches of one client: each costs memory, and a glob costs time with every
    /// write.
    public var watchPatternCount: Int { 10 * watchCount }
    /// Named handlers of one uid.
    public var handlerCount = 1_000
    /// The total size of the patterns of one named handler, in bytes.
    public var handlerPatternByteCount = 4_096
    /// How often a watch gets a bookmark if nothing else is delivered, in milliseconds.
    public var progressMilliseconds: Int64 = 10_000
    /// Channels and patterns that one client subscribes to.
    public var subscriptionCount = 1_000
    /// The longest name or pattern of a channel, in bytes; enough for notifications of the longest
    /// key.
    public var channelNameByteCount = 2_048
    /// Positions of SCAN that are remembered for each user.
    public var scanCount = 4_096
    /// Users whom no rule restricts: root and the daemon's own user.
    package var privilegedUsers: Set<UInt32> = [0, geteuid()]
    /// The users that the daemon can tell apart.
    package var userNamespace = UserNamespace.own
    /// The largest value, and the other limits of the keyspace that it serves.
    public var limits: Limits
    /// The server's version.
    public var version: String
    /// Writes a message to the log; called on the loop thread.
    public var writeLog: @Sendable (LogMessage) -> Void
    /// The memory limit of the process and its use; nil without a limit.
    package var memoryBound: @Sendable () -> MemoryBound? = { nil }
    /// Gives the service manager a sign of life, so often; nil if it expects none.
    package var watchdog: (milliseconds: Int64, report: @Sendable () -> Void)?

    /// The cluster that some keys are a copy of; nil if none are.
    ///
    /// Only a start uses it.
    package var mirror: MirrorOptions?
    /// Has the service manager keep descriptors for the next process, and says whether it was asked;
    /// nil if it keeps none.
    package var handOver: (@Sendable ([Int32]) -> Bool)?
    /// The descriptors that the last process left with the service manager.
    package var handedOver: [Int32] = []

    /// Makes options with the defaults.
    public init(
        limits: Limits = Limits(),
        version: String,
        log: @escaping @Sendable (LogMessage) -> Void = { _ in }
    ) {
        self.limits = limits
        self.version = version
        writeLog = log
    }
}

extension FrameParser.Limits {
    /// For input that was checked before.
    static var none: FrameParser.Limits {
        var limits = FrameParser.Limits()
        limits.argumentByteCount = .max
        limits.argumentCount = .max
        limits.commandByteCount = .max
        limits.inlineByteCount = .max
        return limits
    }
}

extension ServerOptions {
    func log(_ level: LogLevel, _ event: LogEvent, _ text: String, _ fields: [LogField] = []) {
        writeLog(LogMessage(level, event, text, fields))
    }

    /// Reserved places for clients of root and the daemon's own user.
    static let reservedClientCount = 8

    /// The same, with limits of one client reduced to fit into those of all.
    var fitted: ServerOptions {
        var options = self
        // Two such replies must fit.
        options.replyByteCount = min(replyByteCount, memoryByteCount / 2)
        options.inputByteCount = min(inputByteCount, memoryByteCount / 2)
        return options
    }

    /// The limits of a connection's parser.
    var frameLimits: FrameParser.Limits {
        var frames = FrameParser.Limits()
        // Keys are arguments, too, even if the limit of values is smaller.
        frames.argumentByteCount = max(limits.valueByteCount, Key.maximumByteCount)
        frames.commandByteCount = 2 * limits.transactionByteCount
        return frames
    }
}

/// The options in force; a reload replaces them.
///
/// Used only by the loop thread.
final class Settings {
    var options: ServerOptions

    init(_ options: ServerOptions) { self.options = options }
}
