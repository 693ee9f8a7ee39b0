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
