import StateClient
import StateModel

extension Statectl {
    /// `lock NAME -- COMMAND`: runs the command while it has the lock.
    static func lock(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let name = String(decoding: invocation.operands[0], as: UTF8.self)
        var contender = try contender(for: name, isShared: invocation.has("--shared"), invocation)
        let token = try contender.acquire()
        try run(invocation, under: name, token, contender.key)
    }

    /// `elect KEY -- COMMAND`: runs the command while this is the leader, whom the key names.
    static func elect(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        let value = invocation.value("--value") ?? "\(processNumber)".bytes
        let name = String(decoding: key.bytes, as: UTF8.self)
        var contender = try contender(for: name, isShared: false, invocation)
        let token = try contender.acquire()
        try contender.set(value, for: key)
        try run(invocation, under: name, token, contender.key)
    }

    /// `service KEY VALUE -- COMMAND`: the key has the value while the command runs.
    static func service(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let command = try command(invocation)
        let key = try invocation.key()
        let value = invocation.operands[1]
        let client = try invocation.connect()
        let condition = invocation.has("--if-absent") ? Client.Condition.absent : nil
        _ = try attempt(try client.set(value, for: key, if: condition, livingAs: .process))
        try Companion.become(
            command,
            adding: ["STATED_KEY=".bytes + key.bytes],
            invocation,
            key,
            .set(value)
        )
    }

    /// `locks [NAME]`: a line for each holder and waiter, in the order in which they get the lock.
    static func locks(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let name = invocation.operands.first.map { String(decoding: $0, as: UTF8.self) }
        let client = try invocation.connect()
        let contenders = try attempt(try client.contenders(for: name))
        let byName = Dictionary(grouping: contenders) { LockQueue.name(of: $0.key) }
        var rows: [[[UInt8]]] = []
        for name in byName.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            let queue = LockQueue(byName[name] ?? [])
            for contender in queue.contenders {
                let state = queue.obstacle(for: contender.key) == nil ? "holds" : "waits"
                let mode = contender.isShared ? "shared" : "exclusive"
                guard !invocation.isJSON else {
                    output.write(json: [
                        "lock": .bytes(name), "state": .text(state), "mode": .text(mode),
                        "token": .number(contender.token),
                        "uid": .number(Int64(contender.cause.uid)),
                        "pid": .number(Int64(contender.cause.pid)),
                        "command": .text(contender.cause.command),
                        "since": .number(contender.time), "key": .bytes(contender.key),
                    ])
                    continue
                }
                let texts = [
                    state, mode, "\(contender.token)", "\(contender.cause.uid)",
                    "\(contender.cause.pid)", contender.cause.command,
                    Timestamp.text(contender.time),
                ]
                rows.append(texts.map(\.bytes) + [name])
            }
        }
        guard !invocation.isJSON else { return }
        try output.writeTable(
            ["STATE", "MODE", "TOKEN", "UID", "PID", "COMMAND", "SINCE", "LOCK"],
            rows
        )
    }

    private static func contender(
        for name: String,
        isShared: Bool,
        _ invocation: Invocation
    ) throws(Failure) -> LockContender {
        _ = try command(invocation)
        return try LockContender(
            invocation,
            name,
            isShared: isShared,
            until: try invocation.duration("--wait").map { Deadline(after: $0) }
        )
    }

    private static func run(
        _ invocation: Invocation,
        under name: String,
        _ token: Int64,
        _ key: Key
    ) throws(Failure) -> Never {
        try Companion.become(
            try command(invocation),
            adding: [
                "STATED_LOCK=\(name)".bytes,
                "STATED_LOCK_ID=".bytes + LockQueue.identifier(of: key.bytes),
                "STATED_LOCK_TOKEN=\(token)".bytes,
            ],
            invocation,
            key,
            .stop(name: name, token: token)
        )
    }

    private static func command(_ invocation: Invocation) throws(Failure) -> [[UInt8]] {
        if let command = invocation.command { return command }
        throw .usage("no command is given: put -- and the command at the end")
    }
}
