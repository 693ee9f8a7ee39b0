import CLinux
import Glibc
import StateEngine
import Synchronization

/// The options in force; a reload replaces them.
///
/// Used only by the loop thread.
final class Settings {
    var options: ServerOptions

    init(_ options: ServerOptions) { self.options = options }
}

/// The current turn of the loop.
///
/// Used only by the loop thread.
final class Turn {
    /// Wall time in milliseconds since 1970.
    var time: Int64 = 0
    /// The expected time to publish the commits of the current slice to watches.
    var owedNanoseconds: Int64 = 0
    /// Whether something was committed since the last check.
    var hasCommitted = false
    /// The end of the current slice, on the monotonic clock in nanoseconds.
    var sliceEnd: Int64 = 0
    /// The client that was accepted last in this turn.
    var accepted: Connection?
    /// Why other threads have woken the loop.
    var reasons: Wakeup.Reasons = []
    /// Whether the last released replies were those of a single client.
    var hasAnsweredLoneWriter = false

    func takeReasons() -> Wakeup.Reasons {
        defer { reasons = [] }
        return reasons
    }

    /// Records the commits of `context`.
    func note(_ context: inout CommandContext) {
        guard context.hasCommitted else { return }
        context.hasCommitted = false
        hasCommitted = true
        owedNanoseconds += context.core.takePublishingCost()
    }
}

/// The time used by a turn.
struct Stopwatch {
    private(set) var now = clinux_monotonic_nanoseconds()
    /// In nanoseconds, including expected later work.
    private(set) var used: Int64 = 0
    /// The thread's processor time at the last long lap; 0 if it does not count.
    private var processor: Int64 = 0
    /// In longer laps the thread may have been without a processor.
    private static let longLap: Int64 = 50_000

    init(countsProcessor: Bool) {
        if countsProcessor { processor = ProcessorClock.nanoseconds }
    }

    /// - Returns: The time used since the last call, plus `more`.
    mutating func lap(adding more: Int64) -> Int64 {
        let last = now
        now = clinux_monotonic_nanoseconds()
        var lap = now - last
        if lap > Stopwatch.longLap, processor > 0 {
            // This includes the short laps between two long ones, so it is an upper bound.
            let before = processor
            processor = ProcessorClock.nanoseconds
            lap = min(lap, processor - before)
        }
        lap += more
        used += lap
        return lap
    }
}

/// The processor time of this thread, in nanoseconds.
enum ProcessorClock {
    static var nanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// Unfinished work at the end of slices, which continues after the events.
///
/// Used only by the loop thread.
final class UnfinishedWork {
    var items: [Unfinished] = []
    /// The connections with an incomplete command.
    let frames = FrameTimer()
    /// Events that wait to be handled.
    var events: [Poller.Event] = []
    /// When it last continued, on the monotonic clock in nanoseconds.
    var wentOnAt: Int64 = 0
}

/// Unfinished work of a connection, or postponed work of a user.
enum Unfinished {
    /// New clients.
    case arrivals(Arrivals)
    /// Events that came while a user rested; see ``ClientMemory/Account/takePostponed()``.
    case events(ClientMemory.Account)
    /// Input that is not executed yet.
    case input(Connection)
    case listing(ListingCommand)
    /// Output that the socket may accept.
    case output(Connection)

    /// Nil for events of several connections, and for new clients.
    private var connection: Connection? {
        switch self {
        case .arrivals, .events: nil
        case .input(let connection), .output(let connection): connection
        case .listing(let command): command.connection
        }
    }

    var isClosed: Bool { connection?.isClosed ?? false }

    /// Nil for a closed connection, and for new clients, whose user is not known yet.
    var account: ClientMemory.Account? {
        if case .events(let account) = self { return account }
        return connection?.share.account
    }

    /// The time that its user has used recently.
    var usedNanoseconds: Int64 { account?.nanoseconds ?? 0 }

    /// How long it rests if others are served, on the monotonic clock in nanoseconds.
    var restEnd: Int64 {
        if case .arrivals(let arrivals) = self { return arrivals.restEnd }
        return account.map { max($0.rest.end, $0.rest.debtEnd) } ?? 0
    }
}

/// The timers of the loop: one deadline of each kind, on the monotonic clock in milliseconds.
///
/// A turn only compares the earliest deadline with the clock. Used only by the loop thread.
final class TimerQueue {
    enum Timer: Int, CaseIterable {
        /// Listeners are polled again after descriptors had run out.
        case acceptance
        /// Bookmarks of watches.
        case bookmarks
        /// The BLOCK time of a STATE.CHANGES ends.
        case changes
        /// The store is checked.
        case check
        /// Files for which commands wait are checked: nothing reports that a file stays unchanged.
        case files
        /// An incomplete command times out.
        case frames
        /// Suppressed log lines are counted in a line.
        case repeatedLines
        /// Clients that hold memory and do not read are checked, because others wait for memory.
        case stalls
    }

    private var deadlines = [Int64](repeating: .max, count: Timer.allCases.count)
    /// The earliest deadline; `max` if there is none.
    private(set) var next = Int64.max

    func isSet(_ timer: Timer) -> Bool { deadlines[timer.rawValue] < .max }

    /// Sets a timer and replaces its deadline; nil stops it.
    func set(_ timer: Timer, at deadline: Int64?) {
        deadlines[timer.rawValue] = deadline ?? .max
        next = deadlines.min() ?? .max
    }

    /// Sets a timer unless it is due earlier.
    func advance(_ timer: Timer, to deadline: Int64) {
        guard deadline < deadlines[timer.rawValue] else { return }
        deadlines[timer.rawValue] = deadline
        next = min(next, deadline)
    }

    /// Stops the timers that are due and returns them.
    func takeDue(at now: Int64) -> [Timer] {
        guard now >= next else { return [] }
        let due = Timer.allCases.filter { deadlines[$0.rawValue] <= now }
        for timer in due { deadlines[timer.rawValue] = .max }
        next = deadlines.min() ?? .max
        return due
    }
}

/// Wakes the loop: an eventfd to which other threads write.
///
/// Whoever may wake the loop retains it, and the descriptor stays open as long. After closing, its
/// number could belong to another file, such as one of the store.
package final class Wakeup: Sendable {
    package let descriptor: Int32
    private let reasons = Atomic<UInt8>(0)

    /// Why the loop was woken.
    struct Reasons: OptionSet {
        let rawValue: UInt8
        static let storage = Reasons(rawValue: 1)
        static let history = Reasons(rawValue: 2)
        static let configuration = Reasons(rawValue: 4)
    }

    init() {
        descriptor = clinux_eventfd()
        precondition(descriptor >= 0, "eventfd: \(String(cString: strerror(errno)))")
    }

    deinit { close(descriptor) }

    /// Wakes the loop.
    ///
    /// The descriptor is edge-triggered, so nobody has to read it. If reasons are already waiting,
    /// nothing is written: the loop takes all of them.
    func wake(for reason: Reasons) {
        let (before, _) = reasons.bitwiseOr(reason.rawValue, ordering: .sequentiallyConsistent)
        guard before == 0 else { return }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Takes the reasons, once the descriptor is ready.
    func take() -> Reasons {
        Reasons(rawValue: reasons.exchange(0, ordering: .sequentiallyConsistent))
    }
}
