import CLinux
import StateEngine
import StateWire

/// STATE.TOP: which keys change most, and who changes them.
///
/// Nothing is counted before somebody asks, and nothing from 10 s after the last question on. While
/// it counts, it is one more watch of everything: it runs when commits are published, so no write
/// waits for it. Used only by the loop thread, under the keyspace's lock.
final class Activity {
    /// How long it counts after a question, in milliseconds.
    private static let milliseconds: Int64 = 10_000
    /// The most keys, and writers, that are kept when there are twice as many: the busiest.
    private static let limit = 1_000
    /// The most that are reported.
    private static let shownCount = 100

    private struct Count {
        var changes: Int64 = 0
        var bytes: Int64 = 0
    }

    private var subscription: CommitSubscription?
    private var keys: [[UInt8]: Count] = [:]
    private var writers: [[UInt8]: Count] = [:]
    private var askedAt: Int64 = 0
    private var beganAt: Int64 = 0

    /// Watchers in the keyspace's hub that do not belong to STATE.WATCH.
    var watcherCount: Int { subscription == nil ? 0 : 1 }

    /// Writes the counts since counting began.
    func write(_ context: inout CommandContext) throws(StateError) {
        try context.requireAdmin("STATE.TOP")
        guard context.showsEverything else {
            throw StateError(
                .noPermission,
                "STATE.TOP would show keys that uid \(context.connection.peer.uid) may not read"
            )
        }
        askedAt = context.time
        begin(context.core, at: context.time)
        context.output.writeMap(4, context.version)
        context.output.writeField("time", context.time)
        context.output.writeField("since", beganAt)
        context.output.writeBulk("keys")
        Activity.write(keys, to: &context)
        context.output.writeBulk("writers")
        Activity.write(writers, to: &context)
    }

    private static func write(_ counts: [[UInt8]: Count], to context: inout CommandContext) {
        let busiest = counts.sorted { $0.value.changes > $1.value.changes }.prefix(shownCount)
        context.output.writeArray(busiest.count)
        for (name, count) in busiest {
            context.output.writeArray(3)
            context.output.writeBulk(name)
            context.output.writeInteger(count.changes)
            context.output.writeInteger(count.bytes)
        }
    }

    private func begin(_ core: KeyspaceCore, at time: Int64) {
        guard subscription == nil else { return }
        beganAt = time
        subscription = CommitSubscription(PatternSet([.everything]), in: core) {
            [unowned self] _, changes, core in
            count(changes, core)
        }
    }

    private func count(_ changes: [Record], _ core: KeyspaceCore) {
        guard let last = changes.last else { return }
        guard last.time - askedAt <= Activity.milliseconds else {
            subscription?.end(in: core)
            subscription = nil
            (keys, writers) = ([:], [:])
            return
        }
        for change in changes {
            let byteCount = Int64(change.key.count + (change.value?.count ?? 0))
            Activity.add(Array(change.key), byteCount, to: &keys)
            Activity.add(core.causeBytes(of: change), byteCount, to: &writers)
        }
    }

    private static func add(_ name: [UInt8], _ byteCount: Int64, to counts: inout [[UInt8]: Count])
    {
        if counts.count >= 2 * limit, counts[name] == nil {
            let busiest = counts.sorted { $0.value.changes > $1.value.changes }.prefix(limit)
            counts = Dictionary(uniqueKeysWithValues: busiest.map { ($0.key, $0.value) })
        }
        counts[name, default: Count()].changes += 1
        counts[name, default: Count()].bytes += byteCount
    }
}
