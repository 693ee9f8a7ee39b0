import StateClient
import StateModel

extension Statectl {
    /// `handlers`: the position of each named handler; or removes one.
    static func handlers(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        if let name = invocation.text("--forget") {
            guard try attempt(try client.forgetHandler(name)) else {
                Output.report("this user has no handler '\(name)'")
                throw .negative
            }
            return
        }
        let handlers = try attempt(try client.handlers())
        if invocation.isJSON {
            for handler in handlers { output.write(json: json(handler)) }
        } else {
            try output.writeTable(
                ["NAME", "UID", "POSITION", "LAG", "PID", "DONE", "PATTERNS"],
                handlers.map(row)
            )
        }
    }

    private static func json(_ handler: Client.Handler) -> JSONLine {
        [
            "name": .text(handler.name), "uid": .number(handler.uid),
            "patterns": .texts(handler.patterns.map { String(decoding: $0, as: UTF8.self) }),
            "position": .number(handler.position), "epoch": .text(handler.epoch),
            "lag": .number(handler.lag), "pid": .number(handler.pid),
            "time": .number(handler.time),
        ]
    }

    private static func row(_ handler: Client.Handler) -> [[UInt8]] {
        func shown(_ number: Int64?) -> String { number.map(String.init) ?? "-" }
        let cells = [
            handler.name, String(handler.uid), shown(handler.position), shown(handler.lag),
            shown(handler.pid), handler.time.map(Timestamp.text) ?? "-",
        ]
        return cells.map(\.bytes) + [Array(handler.patterns.joined(separator: " ".bytes))]
    }
}
