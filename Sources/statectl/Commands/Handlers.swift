import StateClient
import StateModel

extension Statectl {
    /// `handlers`: what each named handler has come to; or forgets one.
    static func handlers(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        if let name = invocation.text("--forget") {
            let isForgotten = try attempt { () throws(StateError) in
                try client.forgetHandler(name)
            }
            guard isForgotten else {
                Output.report("there is no handler '\(name)' of this user")
                throw .negative
            }
            return
        }
        let handlers = try attempt { () throws(StateError) in try client.handlers() }
        if invocation.has("--json") {
            for handler in handlers { output.write(json(handler)) }
        } else if !handlers.isEmpty {
            writeTable(handlers, &output)
        }
    }

    private static func json(_ handler: Client.Handler) -> [UInt8] {
        var object = JSONLine()
        object.add("name", text: handler.name)
        object.add("uid", number: handler.uid)
        let patterns = handler.patterns.map { String(decoding: $0, as: UTF8.self) }
        object.add("patterns", texts: patterns)
        object.add("position", numberOrNull: handler.position)
        object.add("epoch", text: handler.epoch)
        object.add("lag", numberOrNull: handler.lag)
        object.add("pid", numberOrNull: handler.pid)
        object.add("time", numberOrNull: handler.time)
        return object.line
    }

    private static func writeTable(_ handlers: [Client.Handler], _ output: inout Output) {
        var rows: [[[UInt8]]] = [
            ["NAME", "UID", "POSITION", "LAG", "PID", "DONE", "PATTERNS"].map { Array($0.utf8) }
        ]
        for handler in handlers {
            let cells = [
                String(handler.uid), shown(handler.position), shown(handler.lag),
                shown(handler.pid), handler.time.map(Timestamp.universal) ?? "-",
            ]
            let patterns = Array(handler.patterns.joined(separator: [UInt8(ascii: " ")]))
            rows.append([Array(handler.name.utf8)] + cells.map { Array($0.utf8) } + [patterns])
        }
        output.writeTable(rows)
    }

    private static func shown(_ number: Int64?) -> String { number.map(String.init) ?? "-" }
}

extension JSONLine {
    fileprivate mutating func add(_ name: String, numberOrNull number: Int64?) {
        if let number { add(name, number: number) } else { add(nullNamed: name) }
    }
}
