import StateClient

/// The handler that a watch is for: the daemon remembers by its name how far it has come.
struct NamedHandler {
    let name: String
    /// Where it begins the first time.
    let start: Client.HandlerStart
    /// Whether this is the first time, whatever was before.
    let isReset: Bool

    /// Whether this process has had it.
    var isAttached = false
    /// What is handled and the daemon has not confirmed.
    var owed: Int64?

    /// What the daemon has confirmed last.
    private var finished: Int64 = 0
    /// When it shall hear of changes to others that are fewer.
    private var isDue = Deadline(after: .zero)

    /// After so many revisions the daemon hears that there was nothing in them.
    ///
    /// So that the handler does not fall behind the history. Each time takes a revision and a sync, and thereby moves all
    /// the others: not too often.
    private static let revisionCount: Int64 = 2_000
    /// After so long it hears of fewer.
    private static let interval: Duration = .seconds(3_600)

    init(name: String, start: Client.HandlerStart, isReset: Bool) {
        self.name = name
        self.start = start
        self.isReset = isReset
    }

    mutating func noteFinished(_ revision: Int64) {
        owed = nil
        finished = revision
        isDue = Deadline(after: Self.interval)
    }

    /// Whether the daemon shall hear that all up to `revision` is handled, though nothing was told.
    func isBehind(_ revision: Int64) -> Bool {
        revision > finished && (revision - finished >= Self.revisionCount || isDue.hasPassed)
    }
}
