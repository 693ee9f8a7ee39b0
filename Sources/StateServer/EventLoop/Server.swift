import CLinux
import Glibc
package import StateEngine
import StateSystem
import StateWire

/// The keyspace on a socket: one thread, one loop.
///
/// A turn of the loop is ``takeTurn()``, and the order of its lines is the guarantee.
package final class Server {
    let keyspace: LocalKeyspace
    let services: Services
    // Used in every turn: reading them through `services` would cost a retain and a release each.
    let turn: Turn
    let flushes: FlushList
    let unfinished: UnfinishedWork
    let timers: TimerQueue
    let dispatcher: Dispatcher
    var poller = Poller()

    /// Only under the keyspace's lock.
    let core: KeyspaceCore
    /// The commit thread wakes it when there is something to settle; the keyspace retains it until
    /// it is closed.
    package let wakeup = Wakeup()
    var signals = Signals()
    var listeners: [Int32] = []
    var reserve = DescriptorReserve()
    var memorySchedule = MemorySchedule()
    /// The input buffer for connections without an incomplete command.
    var scratch = ByteBuffer()

    /// The received signals.
    struct Signals {
        /// A signalfd.
        var descriptor: Int32 = -1
        /// The signal that ends the daemon; 0 if none has come.
        var stop: Int32 = 0
        /// SIGHUP has come.
        var asksToReload = false
    }

    /// Creates a server that does not listen yet.
    ///
    /// - Parameters:
    ///   - keyspace: The keyspace to serve; from now on
    ///     ``run(signals:onReady:onStopping:)`` settles its commits.
    ///   - options: Its limits.
    ///   - storageReport: The storage's fields in STATE.STATUS: name and value.
    package init(
        keyspace: LocalKeyspace,
        options: ServerOptions,
        storageReport: @escaping () -> [(String, String)] = { [] }
    ) {
        self.keyspace = keyspace
        core = keyspace.withCore { $0 }
        core.entries.wallClock = { SystemClock.wallMilliseconds() }
        let settings = Settings(options.fitted)
        let registry = Registry(
            startedAt: SystemClock.wallMilliseconds(),
            store: ServedStore(
                isPersistent: keyspace.isPersistent,
                hasHistory: keyspace.history != nil,
                report: storageReport,
                deferred: { keyspace.deferred }
            ),
            subjects: Subjects(privileged: options.privilegedUsers, in: options.userNamespace),
            memory: ClientMemory(byteLimit: settings.options.memoryByteCount)
        )
        services = Services(keyspace, core, settings, registry) { [wakeup] in
            wakeup.wake(for: .history)
        }
        (turn, flushes, unfinished) = (services.turn, services.flushes, services.work)
        timers = services.timers
        dispatcher = Dispatcher(services)
        _ = poller.add(wakeup.descriptor, Poller.readableOnce, token: Token.wakeup)
        _ = poller.add(services.lifetimes.descriptor, Poller.readable, token: Token.process)
        keyspace.settleElsewhere { [wakeup] in wakeup.wake(for: .storage) }
    }

    var options: ServerOptions { services.settings.options }
    var registry: Registry { services.registry }
    var history: HistoryReader { services.history }

    /// Serves until a signal comes, then stops in order.
    ///
    /// - Parameters:
    ///   - signals: A signalfd of SIGTERM, SIGINT, and SIGHUP, which reloads the configuration.
    ///   - onReady: Called once clients are served.
    ///   - onStopping: Called after the signal; listening sockets may be closed then.
    /// - Returns: The signal.
    package func run(signals: Int32, onReady: () -> Void, onStopping: () -> Void) -> Int32 {
        self.signals.descriptor = signals
        _ = poller.add(signals, Poller.readable, token: Token.signals)
        turn.time = core.entries.wallTime()
        keyspace.withCore { core in
            resolveAccess()
            services.lifetimes.start(core)
            services.audit.follow(core)
        }
        keyspace.publish()
        takeOver()
        scheduleCheck()
        giveSignOfLife()
        reportFullDisk()
        onReady()
        let substitute = LoopSubstitute { [unowned self] in takeTurnsInstead() }
        turn.substitute = substitute
        while self.signals.stop == 0 { takeNextTurn() }
        substitute.end()
        for listener in listeners { poller.remove(listener) }
        listeners = []
        onStopping()
        finish()
        return self.signals.stop
    }

    /// The time until something is due; negative: forever.
    private var nanosecondsToSleep: Int64 {
        var shortest: Int64 = -1
        func wait(_ nanoseconds: Int64) {
            if nanoseconds >= 0, shortest < 0 || nanoseconds < shortest { shortest = nanoseconds }
        }
        if timers.next < .max {
            let milliseconds = max(0, timers.next - SystemClock.monotonicMilliseconds())
            wait(min(milliseconds, Int64(Int32.max)) * 1_000_000)
        }
        if registry.memory.hasFreedMuch { wait(Server.quietMilliseconds * 1_000_000) }
        wait(nanosecondsToExpiry)
        wait(nanosecondsToUnfinished)
        wait(turn.commitsHere.nanosecondsToGroup(at: clinux_monotonic_nanoseconds()))
        return shortest
    }

    // MARK: The turn

    /// Whether the next turn has work without waiting for an event.
    private var hasMoreToDo: Bool {
        hasUnfinished || registry.hasAdvancing && canAdvance || registry.hasPaused && canResume
            || !turn.reasons.isEmpty
    }

    /// Waits for an event, unless there is something to do, and takes a turn.
    func takeNextTurn() {
        let isBusy = hasMoreToDo
        collectEvents(nanoseconds: isBusy ? 0 : nanosecondsToSleep)
        let (count, first) = (unfinished.events.count, unfinished.events.first?.token)
        turn.commitsHere.note(eventCount: count, first: first, isBusy: isBusy)
        takeTurn()
    }

    func takeTurn() {
        // Order matters: durable commits are delivered before new input is read. New changes go to
        // storage before output is sent, so that the commit thread works while replies are sent.
        turn.time = core.entries.wallTime()
        let reasons = turn.takeReasons()
        if reasons.contains(.storage) { settle() }
        // Results of storage make room for what was read.
        if reasons.contains(.history) || reasons.contains(.storage) && !registry.reading.isEmpty {
            finishHistoryJobs()
        }
        if reasons.contains(.configuration) { finishReload() }
        if signals.asksToReload {
            signals.asksToReload = false
            reloadOnSignal()
        }
        handleTimers()
        expire()
        lookAtMemoryIfDue()
        if registry.hasPaused { resumePaused() }
        let waitingCount = registry.holderCount
        handleEvents()
        goOnWithUnfinished()
        endHolders()
        if let cluster = services.gate.cluster, cluster.canSend {
            keyspace.withCore { cluster.form($0) }
        }
        turn.commitsHere.note(waitingCount: registry.holderCount, before: waitingCount)
        publish()
        logNotices()
        if registry.hasAdvancing { advanceWatchers() }
        flushes.drain(flush)
    }

    func take(signal: Int32) {
        if signal == SIGHUP { signals.asksToReload = true } else { signals.stop = max(0, signal) }
    }
}

/// The current turn of the loop.
///
/// Used only by the loop thread.
final class Turn {
    /// Wall time in milliseconds since 1970.
    var time: Int64 = 0
    /// Whether something was committed since the last check.
    var hasCommitted = false
    /// The end of the current slice, on the monotonic clock in nanoseconds.
    var sliceEnd: Int64 = 0
    /// When events were last handled, on the monotonic clock in milliseconds.
    var servedAt: Int64 = 0
    /// The client that was accepted last in this turn.
    var accepted: Connection?
    /// Why other threads have woken the loop.
    var reasons: Wakeup.Reasons = []
    var commitThread = CommitThreadWatch()
    var commitsHere = CommitsHere(processorCount: clinux_processor_count())
    /// Who runs the loop while a commit on its thread waits for a slow disk.
    var substitute: LoopSubstitute?
    /// Whether it does so now.
    var isSubstituted = false
    /// Up to here, replies no longer wait until what they show is kept.
    var shownRevision: Int64 = 0

    func takeReasons() -> Wakeup.Reasons {
        defer { reasons = [] }
        return reasons
    }

    /// Records the commits of `context`.
    func note(_ context: inout CommandContext) {
        guard context.hasCommitted else { return }
        context.hasCommitted = false
        hasCommitted = true
    }
}

/// The time used by a turn.
struct Stopwatch {
    private(set) var now = clinux_monotonic_nanoseconds()
    /// In nanoseconds.
    private(set) var used: Int64 = 0
    /// The thread's processor time at the last long lap; 0 if it does not count.
    private var processor: Int64 = 0
    /// In longer laps the thread may have been without a processor.
    private static let longLap: Int64 = 50_000

    init(countsProcessor: Bool) {
        if countsProcessor { processor = ProcessorClock.nanoseconds }
    }

    /// - Returns: The time used since the last call.
    mutating func lap() -> Int64 {
        let last = now
        now = clinux_monotonic_nanoseconds()
        var lap = now - last
        if lap > Stopwatch.longLap, processor > 0 {
            // This includes the short laps between two long ones, so it is an upper bound.
            let before = processor
            processor = ProcessorClock.nanoseconds
            lap = min(lap, processor - before)
        }
        used += lap
        return lap
    }
}
