import CLinux
import Glibc
import StateEngine
import StateWire

/// Commands of Redis about the server: who the client is, how long commands take, whether all is
/// stored.
struct AdministrationCommands {
    private let registry: Registry
    private let statistics: CommandStatistics
    private let monitors: Monitors
    private let metrics: MetricsCommand
    private let services: Services

    init(_ services: Services) {
        (registry, statistics) = (services.registry, services.statistics)
        monitors = services.monitors
        metrics = MetricsCommand(services)
        self.services = services
    }

    func run(
        _ command: Command.AdministrationCommand,
        _ context: inout CommandContext
    ) throws(StateError) {
        switch command {
        case .memoryStatistics: try memoryStatistics(context)
        case .memoryDoctor:
            context.output.writeBulk(
                "The daemon does not examine its memory. MEMORY STATS has its size; "
                    + "limits.memoryBytes bounds that of the clients."
            )
        case .role:
            context.output.writeArray(3)
            context.output.writeBulk("master")
            context.output.writeInteger(0)
            context.output.writeArray(0)
        case .lastSave:
            try context.storeEverything()
            context.output.writeInteger(context.time / 1_000)
        case .awaitReplicas:
            try context.storeEverything()
            context.output.writeInteger(0)
        case .awaitStorage(let locals):
            guard locals == 0 || context.core.isPersistent else {
                throw StateError(
                    .err,
                    "WAITAOF cannot be used when numlocal is set but nothing is stored (--memory)"
                )
            }
            try context.storeEverything()
            context.output.writeArray(2)
            context.output.writeInteger(context.core.isPersistent ? 1 : 0)
            context.output.writeInteger(0)
        case .metrics: try metrics.write(&context)
        case .top: try services.activity.write(&context)
        case .moment(let time):
            guard services.registry.store.hasHistory else { throw HistoryCommands.noHistory }
            let newest = context.core.revisions.durable
            services.history.read(MomentJob(at: time, through: newest, for: context.connection))
        case .listModules: context.output.writeArray(0)
        case .access(let command): try run(command, context)
        case .slowLog(let command): try run(command, context)
        case .latency(let command): try run(command, context)
        case .monitor: try monitors.begin(context)
        case .resetStatistics:
            try context.requireAdmin("CONFIG RESETSTAT")
            statistics.reset(at: context.time)
            registry.resetCounts()
            context.output.writeOK()
        }
    }

    /// What is counted over all keys is for those who may read them all.
    private func memoryStatistics(_ context: borrowing CommandContext) throws(StateError) {
        let heap = Int64(clinux_heap_byte_count())
        var fields: [(StaticString, Int64)] = [
            ("clients.normal", Int64(registry.memory.byteCount)),
            ("clients.limit", Int64(registry.memory.byteLimit)),
        ]
        if context.showsEverything {
            let count = Int64(context.core.entries.durableCount)
            fields += [
                ("total.allocated", heap), ("keys.count", count),
                ("keys.bytes-per-key", count == 0 ? 0 : heap / count),
            ]
        }
        context.output.writeMap(fields.count, context.version)
        for (name, number) in fields { context.output.writeField(name, number) }
    }

    // MARK: ACL

    /// Users are the uids that the kernel reports; rules say what they may do.
    private func run(
        _ command: Command.AccessCommand,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let uid = context.connection.peer.uid
        switch command {
        case .whoAmI: context.output.writeBulk("\(uid)")
        case .users:
            let others = context.isAdmin ? registry.connections.map(\.peer.uid) : []
            let users = Set(others + [uid]).sorted()
            context.output.writeArray(users.count)
            for user in users { context.output.writeBulk("\(user)") }
        case .list:
            let rights =
                context.restriction == nil
                ? "~* &* +@all" : "+@all, as the rules of the configuration say: see STATE.RULES"
            context.output.writeArray(1)
            context.output.writeBulk("user \(uid) on nopass \(rights)")
        case .categories:
            let names = Set(Verb.all.flatMap(\.categories)).sorted()
            context.output.writeArray(names.count)
            for name in names { context.output.writeBulk(name) }
        case .category(let name):
            let wanted = name.text.lowercased()
            let verbs = Verb.all.filter { $0.categories.contains(wanted) }
            guard !verbs.isEmpty else {
                throw StateError(.err, "Unknown category \(StateError.quoted(name))")
            }
            context.output.writeArray(verbs.count)
            for verb in verbs { context.output.writeBulk(verb.name.rawValue) }
        }
    }

    // MARK: SLOWLOG and LATENCY

    /// Arguments may be keys and values of others.
    private func run(
        _ command: Command.SlowLogCommand,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        try context.requireAdmin("SLOWLOG")
        switch command {
        case .length: context.output.writeInteger(Int64(statistics.slow.count))
        case .reset:
            statistics.resetSlow()
            context.output.writeOK()
        case .get(let count):
            let found = count < 0 ? statistics.slow[...] : statistics.slow.prefix(Int(count))
            context.output.writeArray(found.count)
            for command in found {
                context.output.writeArray(6)
                context.output.writeInteger(command.number)
                context.output.writeInteger(command.time)
                context.output.writeInteger(command.microseconds)
                // The others may be hidden keys, and their values.
                let shown = command.arguments.prefix(context.showsEverything ? .max : 1)
                context.output.writeArray(shown.count)
                for argument in shown { context.output.writeBulk(argument) }
                context.output.writeBulk(command.address)
                context.output.writeBulk(command.client)
            }
        }
    }

    private func run(
        _ command: Command.LatencyCommand,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        try context.requireAdmin("LATENCY")
        let events = statistics.events
        switch command {
        case .latest:
            context.output.writeArray(events.isEmpty ? 0 : 1)
            guard let last = events.last else { return }
            context.output.writeArray(4)
            context.output.writeBulk("command")
            context.output.writeInteger(last.time)
            context.output.writeInteger(last.milliseconds)
            context.output.writeInteger(statistics.longest)
        case .history(let event):
            let found = event.text.lowercased() == "command" ? events : []
            context.output.writeArray(found.count)
            for event in found {
                context.output.writeArray(2)
                context.output.writeInteger(event.time)
                context.output.writeInteger(event.milliseconds)
            }
        case .reset(let names):
            let isMeant =
                names.count == 0
                || (0..<names.count).contains {
                    names[$0].text.lowercased() == "command"
                }
            let isDone = isMeant && !events.isEmpty
            if isDone { statistics.resetEvents() }
            context.output.writeInteger(isDone ? 1 : 0)
        case .doctor:
            context.output.writeBulk(
                events.isEmpty
                    ? "No command has taken 10 ms or more."
                    : "\(events.count) commands have taken 10 ms or more, the longest "
                        + "\(statistics.longest) ms. SLOWLOG GET lists the newest."
            )
        case .histogram(let names): histogram(names, context)
        }
    }

    private func histogram(_ names: Arguments, _ context: borrowing CommandContext) {
        let asked = (0..<names.count).compactMap { Verb.named(names[$0]) }
        let verbs = (names.count == 0 ? Verb.all : asked).filter {
            statistics.counts[$0.index].calls > 0
        }
        context.output.writeMap(verbs.count, context.version)
        for verb in verbs {
            let counts = statistics.counts[verb.index]
            context.output.writeBulk(verb.name.rawValue)
            context.output.writeMap(2, context.version)
            context.output.writeField("calls", Int64(counts.calls))
            context.output.writeBulk("histogram_usec")
            let last = counts.durations.lastIndex { $0 > 0 }
            let first = counts.durations.firstIndex { $0 > 0 }
            let places = first.flatMap { first in last.map { Array(first...$0) } } ?? []
            context.output.writeMap(places.count, context.version)
            var sum = counts.durations.prefix(places.first ?? 0).reduce(0, +)
            for place in places {
                sum += counts.durations[place]
                context.output.writeInteger(1 << Int64(place))
                context.output.writeInteger(Int64(sum))
            }
        }
    }
}
