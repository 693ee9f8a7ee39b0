import StateClient
import StateModel

extension Statectl {
    /// `history KEY`: its changes, newest first.
    static func history(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        try forEachChange(invocation, &output) { (change, key, output) in
            let operation = operation(change)
            output.write(
                isJSON: invocation.isJSON,
                [
                    "revision": .number(change.revision), "op": .text(operation),
                    "key": .bytes(key.bytes), "value": change.value.map { .value($0) },
                    "time": .number(change.time), "by": .text(change.writer),
                ],
                orFields: [
                    "\(change.revision)".bytes, operation.bytes,
                    Timestamp.text(change.time).bytes, change.value ?? [],
                ]
            )
        }
    }

    /// `blame KEY`: who changed it, newest first.
    static func blame(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        var users = UserNames()
        try forEachChange(invocation, &output) { (change, key, output) in
            let cause = Cause(change.writer)
            let user = cause.map { users.name(of: $0.uid) } ?? change.writer
            let process = cause.map { ["\($0.pid)", $0.command, $0.client] } ?? ["", "", ""]
            let cells = [
                "\(change.revision)", operation(change), Timestamp.text(change.time), user,
            ]
            output.write(
                isJSON: invocation.isJSON,
                blameJSON(change, key, cause, user: user),
                orFields: (cells + process).map(\.bytes)
            )
        }
    }

    /// How many changes one request asks for.
    private static let pageCount: Int64 = 1_000

    private static func forEachChange(
        _ invocation: Invocation,
        _ output: inout Output,
        _ body: (Client.HistoryEntry, Key, inout Output) -> Void
    ) throws(Failure) {
        let key = try invocation.key()
        var left = try invocation.number("--limit", atLeast: 1) ?? .max
        let since = try invocation.moment("--since")
        let client = try invocation.connect()
        var last: Int64?
        while left > 0 {
            let limit = Int(min(left, pageCount))
            let page = try attempt(try client.history(of: key, limit: limit, before: last))
            for change in page {
                if since?.isAfter(change) ?? false { return }
                body(change, key, &output)
                try output.flushIfLarge()
            }
            // Nothing is known of the key: a negative answer, as for get.
            if page.isEmpty, last == nil { throw .negative }
            guard page.count == limit else { return }
            last = page.last?.revision
            left -= Int64(page.count)
        }
    }

    private static func operation(_ change: Client.HistoryEntry) -> String {
        change.value == nil ? "delete" : "set"
    }

    private static func blameJSON(
        _ change: Client.HistoryEntry,
        _ key: Key,
        _ cause: Cause?,
        user: String
    ) -> JSONLine {
        var object: JSONLine = [
            "revision": .number(change.revision), "op": .text(operation(change)),
            "key": .bytes(key.bytes), "time": .number(change.time),
        ]
        guard let cause else {
            object.add("by", .text(change.writer))
            return object
        }
        object.add("uid", .number(Int64(cause.uid)))
        object.add("user", .text(user))
        object.add("gid", .number(Int64(cause.gid)))
        object.add("pid", .number(Int64(cause.pid)))
        object.add("command", .text(cause.command))
        object.add("client", .text(cause.client))
        return object
    }
}

extension Moment {
    /// Whether a change was before it.
    fileprivate func isAfter(_ change: Client.HistoryEntry) -> Bool {
        switch self {
        case .now: true
        case .revision(let revision): change.revision < revision
        case .time(let time): change.time < time
        }
    }
}
