import Glibc
import StateClient
import StateModel

extension Statectl {
    /// `top`: what the daemon does, live.
    static func top(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let pause = try invocation.duration("--interval") ?? .seconds(1)
        guard pause >= .milliseconds(100), pause <= .seconds(10) else {
            throw .usage("top: --interval takes a time from 100ms to 10s")
        }
        let milliseconds = Int64(pause / .milliseconds(1))
        let client = try invocation.connect()
        // Before the terminal changes: a user without the right gets a plain error.
        let first = try attempt(try TopSample(client))
        guard !invocation.has("--once") else {
            usleep(UInt32(milliseconds * 1_000))
            let rates = TopRates(from: first, to: try attempt(try TopSample(client)))
            return writeOnce(rates, invocation, &output)
        }
        guard !invocation.isJSON else { throw .usage("top: --json needs --once") }
        try TopView(client).run(after: first, every: milliseconds)
    }

    private static func writeOnce(
        _ rates: TopRates,
        _ invocation: Invocation,
        _ output: inout Output
    ) {
        guard !invocation.isJSON else { return output.write(json: json(rates)) }
        var screen = TopScreen()
        screen.add(rates)
        let (columns, rows) = Terminal.size
        for line in screen.lines(columns: columns, rows: rows) {
            var line = Substring(line)
            while line.last == " " { line.removeLast() }
            output.write(line + "\n")
        }
    }

    private static func json(_ rates: TopRates) -> JSONLine {
        func number(_ value: Double) -> JSONLine.Field { .json("\(value)".bytes) }
        func rows(_ objects: [JSONLine]) -> JSONLine.Field {
            .json("[".bytes + objects.map(\.object).joined(separator: ",".bytes) + "]".bytes)
        }
        func status(_ name: String) -> JSONLine.Field? {
            rates.newest.status[name]?.number.map { .number($0) }
        }
        let keys = rates.keys.map { key -> JSONLine in
            [
                "key": .bytes(key.name), "changesPerSecond": number(key.changes),
                "bytesPerSecond": number(key.bytes),
            ]
        }
        let writers = rates.writers.map { writer -> JSONLine in
            let cause = Cause(String(decoding: writer.name, as: UTF8.self))
            return [
                "uid": cause.map { .number(Int64($0.uid)) },
                "pid": cause.map { .number(Int64($0.pid)) },
                "command": cause.map { .text($0.command) },
                "client": cause.map { .text($0.client) },
                "changesPerSecond": number(writer.changes), "bytesPerSecond": number(writer.bytes),
            ]
        }
        let watches = rates.newest.watches.map { watch -> JSONLine in
            [
                "pid": .number(watch.pid), "uid": .number(watch.uid), "state": .text(watch.state),
                "lag": .number(watch.lag),
                "patterns": .bytes(Array(watch.patterns.joined(separator: " ".bytes))),
            ]
        }
        return [
            "revision": status("revision"), "keyCount": status("keys"),
            "clients": status("clients"),
            "storage": rates.newest.status["storage"].map { .text($0.text) },
            "commitsPerSecond": number(rates.commits), "changesPerSecond": number(rates.changes),
            "bytesPerSecond": number(rates.bytes), "commandsPerSecond": number(rates.commands),
            "syncMilliseconds": number(rates.meanLatency),
            "syncMilliseconds99": number(rates.highLatency), "keys": rows(keys),
            "writers": rows(writers), "watches": rows(watches),
        ]
    }
}
