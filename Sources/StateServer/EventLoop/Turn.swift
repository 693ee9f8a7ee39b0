import StateEngine

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
    /// Whether storage has answered something that is not settled yet.
    var needsSettling = false
    /// The last replies that were released were those of one client.
    var hasAnsweredLoneWriter = false

    /// Takes over what was done with `context`.
    func note(_ context: inout CommandContext) {
        guard context.hasCommitted else { return }
        context.hasCommitted = false
        hasCommitted = true
        owedNanoseconds += context.core.takePublishingCost()
    }
}
