import StateClient
import StateModel

extension Statectl {
    /// `history KEY`: what it was, newest first.
    static func history(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let isJSON = invocation.has("--json")
        try forEachChange(invocation, &output) { (change, key, output) in
            guard !isJSON else { return output.write(json(change, key)) }
            output.write("\(change.revision)\t\(operation(change))\t")
            output.write("\(Timestamp.universal(change.time))\t")
            output.writeEscaped(change.value ?? [])
            output.write("\n")
        }
    }

    /// `blame KEY`: who changed it, newest first.
    static func blame(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let isJSON = invocation.has("--json")
        var users = UserNames()
        try forEachChange(invocation, &output) { (change, key, output) in
            guard !isJSON else { return output.write(blameJSON(change, key, &users)) }
            output.write("\(change.revision)\t\(operation(change))\t")
            output.write(Timestamp.local(change.time))
            guard let cause = Cause(change.writer) else {
                output.write("\t")
                output.writeEscaped(Array(change.writer.utf8))
                output.write("\t\t\t\n")
                return
            }
            let user = users.name(of: cause.uid)
            for field in [user, String(cause.pid), cause.command, cause.client] {
                output.write("\t")
                output.writeEscaped(Array(field.utf8))
            }
            output.write("\n")
        }
    }

    /// How many changes are asked for at once.
    private static let pageCount: Int64 = 1_000

    private static func forEachChange(
        _ invocation: Invocation,
        _ output: inout Output,
        _ body: (Client.HistoryEntry, Key, inout Output) -> Void
    ) throws(Failure) {
        let bytes = invocation.operands[0]
        let key = try attempt { () throws(StateError) in try Key(bytes: bytes) }
        var left = try invocation.number("--limit", atLeast: 1) ?? .max
        let client = try invocation.connect()
        var last: Int64?
        while left > 0 {
            let limit = Int(min(left, pageCount))
            let page = try attempt { () throws(StateError) in
                try client.history(of: key, limit: limit, before: last)
            }
            for change in page {
                body(change, key, &output)
                try output.flushIfLarge()
            }
            // Nothing is known of the key: an answer, as get has it.
            if page.isEmpty, last == nil { throw .negative }
            guard page.count == limit else { return }
            last = page.last?.revision
            left -= Int64(page.count)
        }
    }

    private static func operation(_ change: Client.HistoryEntry) -> String {
        change.value == nil ? "delete" : "set"
    }

    private static func json(_ change: Client.HistoryEntry, _ key: Key) -> [UInt8] {
        var object = JSONLine()
        object.add("revision", number: change.revision)
        object.add("op", text: operation(change))
        object.add("key", bytes: key.bytes)
        if let value = change.value {
            object.add(value: value, named: "value", elseBase64: "base64")
        }
        object.add("time", number: change.time)
        object.add("by", text: change.writer)
        return object.line
    }

    private static func blameJSON(
        _ change: Client.HistoryEntry,
        _ key: Key,
        _ users: inout UserNames
    ) -> [UInt8] {
        var object = JSONLine()
        object.add("revision", number: change.revision)
        object.add("op", text: operation(change))
        object.add("key", bytes: key.bytes)
        object.add("time", number: change.time)
        if let cause = Cause(change.writer) {
            object.add("uid", number: Int64(cause.uid))
            object.add("user", text: users.name(of: cause.uid))
            object.add("gid", number: Int64(cause.gid))
            object.add("pid", number: Int64(cause.pid))
            object.add("command", text: cause.command)
            object.add("client", text: cause.client)
        } else {
            object.add("by", text: change.writer)
        }
        return object.line
    }
}
