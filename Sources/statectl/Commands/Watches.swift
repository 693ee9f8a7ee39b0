import StateClient
import StateModel

extension Statectl {
    /// `watches`: a line for each watch of the daemon.
    static func watches(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let watches = try attempt { () throws(StateError) in try client.watches() }
        guard !invocation.has("--json") else {
            for watch in watches {
                output.write(json(watch))
                try output.flushIfLarge()
            }
            return
        }
        var rows = [["CLIENT", "WATCH", "PID", "UID", "STATE", "REVISION", "LAG", "WAITING"]]
        for watch in watches {
            let numbers = [watch.client, watch.watch, watch.pid, watch.uid].map { String($0) }
            let lag = [watch.revision, watch.lag, watch.waiting].map { String($0) }
            rows.append(numbers + [watch.state] + lag)
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        for (index, row) in rows.enumerated() {
            for (cell, width) in zip(row, widths) {
                output.write(cell + String(repeating: " ", count: width - cell.count + 2))
            }
            if index == 0 {
                output.write("NAME  PATTERNS\n")
            } else {
                write(watches[index - 1], &output)
            }
            try output.flushIfLarge()
        }
    }

    /// What may hold any bytes: the name, `-` where there is none, the patterns and the options.
    private static func write(_ watch: Client.WatchReport, _ output: inout Output) {
        output.writeEscaped(watch.name.isEmpty ? [UInt8(ascii: "-")] : Array(watch.name.utf8))
        output.write(" ")
        for pattern in watch.patterns {
            output.write(" ")
            output.writeEscaped(pattern)
        }
        for option in watch.options { output.write(" \(option)") }
        output.write("\n")
    }

    private static func json(_ watch: Client.WatchReport) -> [UInt8] {
        var object = JSONLine()
        object.add("client", number: watch.client)
        object.add("watch", number: watch.watch)
        object.add("pid", number: watch.pid)
        object.add("uid", number: watch.uid)
        object.add("name", text: watch.name)
        object.add("patterns", bytes: Array(watch.patterns.joined(separator: [UInt8(ascii: " ")])))
        object.add("options", text: watch.options.joined(separator: " "))
        object.add("state", text: watch.state)
        object.add("revision", number: watch.revision)
        object.add("lag", number: watch.lag)
        object.add("waiting", number: watch.waiting)
        object.add("marks", number: watch.marks)
        object.add("values", number: watch.values)
        return object.line
    }
}
