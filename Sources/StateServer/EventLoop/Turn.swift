import CLinux
import Glibc
import StateEngine
import Synchronization

/// The options that are in force; a reload exchanges them.
///
/// Everything belongs to the loop thread.
final class Settings {
    var options: ServerOptions

    init(_ options: ServerOptions) { self.options = options }
}

/// The turn of the loop that is under way.
///
/// Everything belongs to the loop thread.
final class Turn {
    /// Wall time in milliseconds since 1970.
    var time: Int64 = 0
    /// What the commits of the slice at hand will take to be published to watches.
    var owedNanoseconds: Int64 = 0
    /// Whether something was committed since this was last looked at.
    var hasCommitted = false
    /// When the slice of the connection that is served ends, on the monotonic clock in nanoseconds.
    var sliceEnd: Int64 = 0
    /// The client that came last in this turn.
    var accepted: Connection?
    /// What other threads have woken the loop for.
    var reasons: Wakeup.Reasons = []
    /// The last replies that were released were those of one client.
    var hasAnsweredLoneWriter = false

    func takeReasons() -> Wakeup.Reasons {
        defer { reasons = [] }
        return reasons
    }

    /// Takes over what was done with `context`.
    func note(_ context: inout CommandContext) {
        guard context.hasCommitted else { return }
        context.hasCommitted = false
        hasCommitted = true
        owedNanoseconds += context.core.takePublishingCost()
    }
}

/// What a turn has used so far.
struct Stopwatch {
    private(set) var now = clinux_monotonic_nanoseconds()
    /// In nanoseconds, with what is still to come of it.
    private(set) var used: Int64 = 0
    /// What the thread had of a processor at the last long lap; 0 if that does not count.
    private var processor: Int64 = 0
    /// Longer laps may be those in which the thread had no processor.
    private static let longLap: Int64 = 50_000

    init(countsProcessor: Bool) {
        if countsProcessor { processor = ProcessorClock.nanoseconds }
    }

    /// - Returns: What was used since the last call, and `more`.
    mutating func lap(adding more: Int64) -> Int64 {
        let last = now
        now = clinux_monotonic_nanoseconds()
        var lap = now - last
        if lap > Stopwatch.longLap, processor > 0 {
            // The short laps between two long ones are in it, so it is an upper bound.
            let before = processor
            processor = ProcessorClock.nanoseconds
            lap = min(lap, processor - before)
        }
        lap += more
        used += lap
        return lap
    }
}

/// What this thread has had of a processor so far, in nanoseconds.
enum ProcessorClock {
    static var nanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// What is left over at the end of slices and goes on after the events.
///
/// Everything belongs to the loop thread.
final class UnfinishedWork {
    var items: [Unfinished] = []
    /// Who has begun a command and not ended it.
    let frames = FrameTimer()
    /// Events that wait to be handled.
    var events: [Poller.Event] = []
    /// When it was last gone on with, on the monotonic clock in nanoseconds.
    var wentOnAt: Int64 = 0
}

/// What a connection has left over at the end of its slice, or what a user has to wait with.
enum Unfinished {
    /// Clients that come.
    case arrivals(Arrivals)
    /// What came while a user rested; see ``ClientMemory/Account/takePostponed()``.
    case events(ClientMemory.Account)
    /// Input that came in and is not carried out.
    case input(Connection)
    case listing(ListingCommand)
    /// Output that the socket may take.
    case output(Connection)

    /// Nil for events of several, and for clients that come.
    private var connection: Connection? {
        switch self {
        case .arrivals, .events: nil
        case .input(let connection), .output(let connection): connection
        case .listing(let command): command.connection
        }
    }

    var isClosed: Bool { connection?.isClosed ?? false }

    /// Nil for a connection that is closed, and for clients that come: whose they are is not known.
    var account: ClientMemory.Account? {
        if case .events(let account) = self { return account }
        return connection?.share.account
    }

    /// What its user has used lately.
    var usedNanoseconds: Int64 { account?.nanoseconds ?? 0 }

    /// How long it rests if others are served, on the monotonic clock in nanoseconds.
    var restEnd: Int64 {
        if case .arrivals(let arrivals) = self { return arrivals.restEnd }
        return account.map { max($0.rest.end, $0.rest.debtEnd) } ?? 0
    }
}

/// When what no event tells of is due: one deadline of each kind, on the monotonic clock in milliseconds.
///
/// A turn compares the earliest of them with the clock and looks at nothing else. Everything belongs to the loop thread.
final class TimerQueue {
    enum Timer: Int, CaseIterable {
        /// Listeners are watched again after descriptors had run out.
        case acceptance
        /// Bookmarks of watches.
        case bookmarks
        /// A STATE.CHANGES has waited for as long as it asked to.
        case changes
        /// Everything that is stored is read.
        case check
        /// Files that commands wait for may be at rest and as before, of which nobody tells.
        case files
        /// A command was begun and not ended.
        case frames
        /// Lines were left out of the log.
        case repeatedLines
        /// Clients hold memory that others wait for, and read nothing.
        case stalls
    }

    private var deadlines = [Int64](repeating: .max, count: Timer.allCases.count)
    /// The earliest deadline; `max` if nothing is due ever.
    private(set) var next = Int64.max

    func isSet(_ timer: Timer) -> Bool { deadlines[timer.rawValue] < .max }

    /// Sets a timer, whatever it was set to; nil stops it.
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

/// What wakes the loop: an eventfd, which other threads write to.
///
/// Whoever may wake holds it, and the descriptor lives as long: once it is closed its number is another's, a file of the store
/// perhaps.
package final class Wakeup: Sendable {
    package let descriptor: Int32
    private let reasons = Atomic<UInt8>(0)

    /// What there is to do.
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
    /// The descriptor is edge-triggered, so nobody has to read it. Where reasons wait already, nothing is written: the loop takes all.
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
