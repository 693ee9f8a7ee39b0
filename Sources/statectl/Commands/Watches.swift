import StateClient
import StateModel

extension Statectl {
    /// `watches`: a line for each watch of the daemon.
    static func watches(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let watches = try attempt(try client.watches())
        guard !invocation.isJSON else {
            for watch in watches {
                output.write(json: json(watch))
                try output.flushIfLarge()
            }
            return
        }
        let numbers = ["CLIENT", "WATCH", "PID", "UID", "STATE", "REVISION", "LAG", "WAITING"]
        try output.writeTable(numbers + ["NAME  PATTERNS"], watches.map(row))
    }

    private static func row(_ watch: Client.WatchReport) -> [[UInt8]] {
        let numbers = [watch.client, watch.watch, watch.pid, watch.uid].map { String($0) }
        let lag = [watch.revision, watch.lag, watch.waiting].map { String($0) }
        // The cells that may contain any bytes: the name (`-` if none), the patterns and the
        // options.
        let name = watch.name.isEmpty ? "- ".bytes : "\(watch.name) ".bytes
        let words = [name] + watch.patterns + watch.options.map(\.bytes)
        let cells = numbers + [watch.state] + lag
        return cells.map(\.bytes) + [Array(words.joined(separator: " ".bytes))]
    }

    private static func json(_ watch: Client.WatchReport) -> JSONLine {
        [
            "client": .number(watch.client), "watch": .number(watch.watch),
            "pid": .number(watch.pid), "uid": .number(watch.uid), "name": .text(watch.name),
            "patterns": .bytes(Array(watch.patterns.joined(separator: " ".bytes))),
            "options": .text(watch.options.joined(separator: " ")), "state": .text(watch.state),
            "revision": .number(watch.revision), "lag": .number(watch.lag),
            "waiting": .number(watch.waiting), "pending": .number(watch.pending),
            "values": .number(watch.values),
        ]
    }
}
