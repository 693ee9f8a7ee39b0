/// How much of the loop the watches of one user, or its subscriptions, may take.
///
/// A glob is compared with every key that is written, also by others, and nobody else is served
/// meanwhile: 100 globs of 1 KiB and a commit of 10,000 keys took 36 s. So comparisons are counted
/// in steps of the matcher, as are the changes that watches receive. A watch whose user has none
/// left receives the commit later, from the history; a subscriber gets the message later.
///
/// What rules hide costs nothing, so that nobody learns from a late commit what others write. A debt
/// stays until it is paid, also if the last glob ends: who begins again must not begin with a full
/// allowance.
package final class GlobAllowance {
    /// The steps of a full allowance: about 6 ms, or one commit of 10,000 short keys and 20 globs.
    package static let fullStepCount = 4 << 20
    /// Each step is given back after so many nanoseconds: in the long run the comparisons
    /// of a user's watches take a seventh of a processor.
    package static let nanosecondsPerStep: Int64 = 10
    /// Each comparison costs so many steps besides those of the matcher.
    private static let stepsPerComparison = 8

    /// A change that a watch receives costs so many steps, and the first of a commit more: 10,000
    /// watches and a commit of 10,000 keys took 5 s and a gigabyte.
    private static let stepsPerReport = 16
    private static let stepsPerCommit = 64

    private let fullStepCount: Int
    private let nanosecondsPerStep: Int64
    private var stepsLeft: Int
    private var refilledAt: Int64 = 0
    /// How many crowds of the hub use it.
    var crowdCount = 0

    package init(
        fullStepCount: Int = GlobAllowance.fullStepCount,
        nanosecondsPerStep: Int64 = GlobAllowance.nanosecondsPerStep
    ) {
        (self.fullStepCount, stepsLeft) = (fullStepCount, fullStepCount)
        self.nanosecondsPerStep = nanosecondsPerStep
    }

    package var hasSteps: Bool { stepsLeft > 0 }

    /// Whether nothing has to be given back, at a time in nanoseconds of the monotonic clock.
    package func isFull(at now: Int64) -> Bool {
        refill(at: now)
        return stepsLeft == fullStepCount
    }

    /// Gives back what the time since the last call allows, in nanoseconds of the monotonic clock.
    package func refill(at now: Int64) {
        let steps = Int(clamping: (now - refilledAt) / nanosecondsPerStep)
        guard steps > 0 else { return }
        stepsLeft = min(fullStepCount, stepsLeft + steps)
        refilledAt = now
    }

    /// Takes steps for something else that is to be done with a match.
    package func take(_ steps: Int) { stepsLeft -= steps }

    /// Compares a key with a glob and takes the steps of that.
    ///
    /// - Returns: Whether it matches; nil if no steps are left.
    package func matches(_ pattern: Pattern, _ key: Bytes) -> Bool? {
        guard stepsLeft > 0 else { return nil }
        stepsLeft -= GlobAllowance.stepsPerComparison
        return pattern.matches(key, counting: &stepsLeft)
    }

    /// Takes the steps of a change that a watch receives.
    ///
    /// - Parameter isFirst: Whether it is the first that the watch receives of a commit.
    /// - Returns: Whether there were any left.
    func takeReport(isFirst: Bool) -> Bool {
        guard stepsLeft > 0 else { return false }
        stepsLeft -= GlobAllowance.stepsPerReport + (isFirst ? GlobAllowance.stepsPerCommit : 0)
        return true
    }
}
