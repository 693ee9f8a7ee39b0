import StateClient

/// The named handler of a watch: the daemon remembers its position by its name.
struct NamedHandler {
    let name: String
    /// Where it begins the first time.
    let start: Client.HandlerStart
    /// Whether it begins anew, whatever position the daemon remembers.
    let isReset: Bool

    /// Whether this process has attached it before.
    var isAttached = false
    /// The revision that is handled but not yet acknowledged by the daemon.
    var owed: Int64?

    /// The last revision that the daemon acknowledged.
    private var finished: Int64 = 0
    /// When the daemon gets the position even if it is less than ``revisionCount`` behind.
    private var isDue = Deadline(after: .zero)

    /// After so many revisions without a match the daemon gets the position.
    ///
    /// So the handler does not fall behind the history. Each time costs a revision, which all other
    /// handlers then have to pass, and a sync: so this must be rare.
    private static let revisionCount: Int64 = 2_000
    /// After so long the daemon gets the position in any case.
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

    /// Whether the daemon should get `revision` as the position, though no change was delivered.
    func isBehind(_ revision: Int64) -> Bool {
        revision > finished && (revision - finished >= Self.revisionCount || isDue.hasPassed)
    }
}
