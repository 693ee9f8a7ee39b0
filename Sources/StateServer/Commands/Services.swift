import StateEngine

/// The services for the handlers of commands; each handler takes those that it needs.
///
/// Used only by the loop thread.
final class Services {
    let keyspace: LocalKeyspace
    let settings: Settings
    let turn = Turn()
    let registry: Registry
    let flushes = FlushList()
    let timers = TimerQueue()
    let lifetimes: Lifetimes
    let gate: ReplyGate
    let channels: Channels
    let access: AccessChanges
    let quotas: ClientQuotas
    let work = UnfinishedWork()
    let leftovers: Leftovers
    let listings: Listings
    let history: HistoryReader
    /// The STATE.CHANGES that wait.
    let waitingForChanges: BlockedList
    let configuration = Configuration()
    let statistics = CommandStatistics()
    let monitors: Monitors
    let activity = Activity()
    let tracking: Tracking
    let audit: Audit
    let backups: Backups
    /// The copy of a cluster; nil if no rule asks for one.
    let mirror: Mirror?

    /// `wake` makes the loop take a turn; any thread may call it.
    init(
        _ keyspace: LocalKeyspace,
        _ core: KeyspaceCore,
        _ settings: Settings,
        _ registry: Registry,
        wake: @escaping @Sendable () -> Void
    ) {
        self.keyspace = keyspace
        self.settings = settings
        self.registry = registry
        lifetimes = Lifetimes(settings, registry)
        access = AccessChanges(core)
        gate = ReplyGate(settings, turn, registry, flushes, timers)
        waitingForChanges = BlockedList(timers)
        channels = Channels(settings, flushes, registry.memory, work)
        monitors = Monitors(settings, registry, flushes)
        leftovers = Leftovers(work)
        tracking = Tracking(settings, registry, channels, flushes, leftovers)
        audit = Audit(settings, registry)
        quotas = ClientQuotas(registry, gate)
        listings = Listings(access, work, gate)
        backups = Backups(keyspace)
        mirror = settings.options.mirror.map { [timers] in Mirror($0, timers, registry) }
        if let mirror {
            mirror.writes = ClusterWrites(mirror, gate)
            gate.cluster = mirror.writes
            core.admission.clusterLink = mirror
        }
        history = HistoryReader(keyspace, registry, access, wake: wake)
    }
}
