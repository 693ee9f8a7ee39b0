import CLinux
import StateEngine
import StateSystem
import StateWire

/// STATE.TOP: which keys change most, and who changes them.
///
/// Nothing is counted before somebody asks, and nothing from 10 s after the last question on. While
/// it counts, it is one more watch of everything: it runs when commits are published, so no write
/// waits for it. Used only by the loop thread, under the keyspace's lock.
final class Activity {
    /// The most that are reported.
    private static let shownCount = 100

    private var subscription: CommitSubscription?
    private var counting = ActivityCounting(at: 0)
    /// Wall time, in milliseconds.
    private var beganAt: Int64 = 0

    /// Watchers in the keyspace's hub that do not belong to STATE.WATCH.
    var watcherCount: Int { subscription == nil ? 0 : 1 }

    /// Writes the counts since counting began, and the rates.
    func write(_ context: inout CommandContext) throws(StateError) {
        try context.requireAdmin("STATE.TOP")
        guard context.showsEverything else {
            throw StateError(
                .noPermission,
                "STATE.TOP would show keys that uid \(context.connection.peer.uid) may not read"
            )
        }
        let time = SystemClock.monotonicMilliseconds()
        begin(context.core, at: time, wallTime: context.time)
        counting.askedAt = time
        context.output.writeMap(4, context.version)
        context.output.writeField("time", context.time)
        context.output.writeField("since", beganAt)
        context.output.writeBulk("keys")
        Activity.write(counting.keys.rows(Activity.shownCount, at: time), to: &context)
        context.output.writeBulk("writers")
        Activity.write(counting.writers.rows(Activity.shownCount, at: time), to: &context)
    }

    private static func write(_ rows: [ActivityCounts.Row], to context: inout CommandContext) {
        context.output.writeArray(rows.count)
        for row in rows {
            context.output.writeArray(5)
            context.output.writeBulk(row.name)
            context.output.writeInteger(row.count.changes)
            context.output.writeInteger(row.count.bytes)
            context.output.writeInteger(thousandths(row.changesPerSecond))
            context.output.writeInteger(thousandths(row.bytesPerSecond))
        }
    }

    private static func thousandths(_ value: Double) -> Int64 {
        Int64(min(value * 1_000, 9e18).rounded())
    }

    private func begin(_ core: KeyspaceCore, at time: Int64, wallTime: Int64) {
        guard subscription == nil else { return }
        counting = ActivityCounting(at: time)
        beganAt = wallTime
        subscription = CommitSubscription(PatternSet([.everything]), in: core) {
            [unowned self] _, changes, core in
            count(changes, core)
        }
    }

    private func count(_ changes: [Record], _ core: KeyspaceCore) {
        guard !changes.isEmpty else { return }
        let time = SystemClock.monotonicMilliseconds()
        guard !counting.isOver(at: time) else {
            subscription?.end(in: core)
            subscription = nil
            counting = ActivityCounting(at: time)
            return
        }
        let (keyWeight, writerWeight) = counting.weights(at: time)
        for change in changes {
            let byteCount = Int64(change.key.count + (change.value?.count ?? 0))
            counting.keys.add(Array(change.key), byteCount, weighing: keyWeight)
            counting.writers.add(core.causeBytes(of: change), byteCount, weighing: writerWeight)
        }
    }
}

/// What STATE.TOP counts, and for how long.
///
/// Times are on the monotonic clock, in milliseconds: a wall clock that is set must neither end it
/// nor keep it.
package struct ActivityCounting {
    /// How long it counts after a question.
    private static let milliseconds: Int64 = 10_000

    package var askedAt: Int64
    package var keys: ActivityCounts
    package var writers: ActivityCounts

    /// Begins to count at `time`, when somebody asks.
    package init(at time: Int64) {
        askedAt = time
        keys = ActivityCounts(at: time)
        writers = ActivityCounts(at: time)
    }

    /// Whether nobody has asked for so long that it ends.
    package func isOver(at time: Int64) -> Bool {
        time - askedAt > ActivityCounting.milliseconds
    }

    /// What a change at `time` weighs.
    package mutating func weights(at time: Int64) -> (key: Double, writer: Double) {
        (keys.weight(at: time), writers.weight(at: time))
    }
}
