import CLinux
import StateClient
import StateModel

/// What the daemon says of itself at one moment.
struct TopSample {
    let nanoseconds: Int64
    let status: [String: Client.StatusField]
    /// By name and labels, as in the text format of Prometheus.
    let metrics: [String: Double]
    let activity: Client.Activity
    let watches: [Client.WatchReport]

    init(_ client: Client) throws(StateError) {
        activity = try client.activity()
        status = Dictionary(try client.status().map { ($0.name, $0) }) { first, _ in first }
        metrics = TopSample.parsed(try client.metrics())
        watches = try client.watches()
        nanoseconds = clinux_monotonic_nanoseconds()
    }

    private static func parsed(_ text: [UInt8]) -> [String: Double] {
        var metrics: [String: Double] = [:]
        for line in text.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#")
        {
            guard let space = line.lastIndex(of: UInt8(ascii: " ")) else { continue }
            let name = String(decoding: line[..<space], as: UTF8.self)
            metrics[name] = Double(String(decoding: line[(space + 1)...], as: UTF8.self))
        }
        return metrics
    }

    /// The sum of all rows of a metric.
    func total(_ name: String) -> Double {
        metrics.reduce(0) {
            $1.key == name || $1.key.hasPrefix(name + "{") ? $0 + $1.value : $0
        }
    }
}

/// What happened between two samples.
struct TopRates {
    /// A key or a writer with its changes and bytes a second.
    struct Busy {
        let name: [UInt8]
        let changes: Double
        let bytes: Double
    }

    let newest: TopSample
    let commits: Double
    let changes: Double
    let bytes: Double
    let commands: Double
    /// Of the syncs, in milliseconds; 0 if there was none.
    let meanLatency: Double
    /// The bound of the histogram below which 99 of 100 were.
    let highLatency: Double
    let keys: [Busy]
    let writers: [Busy]

    init(from old: TopSample, to new: TopSample) {
        newest = new
        let seconds = max(0.001, Double(new.nanoseconds - old.nanoseconds) / 1e9)
        func rate(_ name: String) -> Double {
            max(0, new.total("stated_" + name) - old.total("stated_" + name)) / seconds
        }
        commands = rate("commands_total")
        let syncs = rate("sync_duration_seconds_count")
        meanLatency = syncs > 0 ? rate("sync_duration_seconds_sum") / syncs * 1_000 : 0
        highLatency = TopRates.quantile(from: old, to: new)
        keys = TopRates.busy(new.activity.keys)
        writers = TopRates.busy(new.activity.writers)
        guard new.status["backing"]?.text == "memory" else {
            commits = rate("commits_total")
            changes = rate("changes_total")
            bytes = rate("change_bytes_total")
            return
        }
        // Without storage nothing counts commits.
        commits = rate("revision")
        changes = writers.reduce(0) { $0 + $1.changes }
        bytes = writers.reduce(0) { $0 + $1.bytes }
    }

    /// The rates that the daemon keeps: a difference of two counts would not know what the counts of
    /// a name were that has come into the list only now.
    private static func busy(_ counts: [Client.ActivityCount]) -> [Busy] {
        // Less is shown as 0.
        counts.filter { $0.changesPerSecond >= 0.05 }
            .map { Busy(name: $0.name, changes: $0.changesPerSecond, bytes: $0.bytesPerSecond) }
            .sorted { ($1.changes, $0.name.description) < ($0.changes, $1.name.description) }
    }

    private static func quantile(from old: TopSample, to new: TopSample) -> Double {
        let start = "stated_sync_duration_seconds_bucket{le=\""
        let buckets = new.metrics.compactMap { name, count -> (bound: Double, count: Double)? in
            guard name.hasPrefix(start) else { return nil }
            let text = name.dropFirst(start.count).dropLast(2)
            let bound = text == "+Inf" ? Double.infinity : Double(text) ?? .infinity
            return (bound, count - (old.metrics[name] ?? 0))
        }.sorted { $0.bound < $1.bound }
        guard let last = buckets.last, last.count > 0 else { return 0 }
        let index = buckets.firstIndex { $0.count >= 0.99 * last.count } ?? 0
        let bound = buckets[index].bound
        return (bound.isFinite ? bound : buckets.dropLast().last?.bound ?? 0) * 1_000
    }
}
