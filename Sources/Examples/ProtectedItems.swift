import Glibc
import StateContainers

/// A secret value: stored as it is, printed as `•••`.
private struct Protected<Value: Codable & Sendable>: Codable, Sendable {
    var secret: Value

    init(_ secret: Value) { self.secret = secret }

    init(from decoder: any Decoder) throws {
        secret = try decoder.singleValueContainer().decode(Value.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(secret)
    }
}

extension Protected: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "•••" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}

extension Example {
    static let protectedItems = Example(
        name: "protected-items",
        summary: "a secret: its file has mode 0600, it prints as •••, no trace contains it"
    ) { checks in
        let scratch = try Scratch()
        let token = try await FileState(
            Protected(""),
            key: "token",
            in: StateDirectory(path: scratch.path(of: "secrets"))
        )
        let kept = StateLock<[StateTrace.Event]>([])
        StateTrace.hook = { event in kept.withLock { $0.append(event) } }
        let printed = StateLock("")
        let observation = token.observe(on: .inline, initial: false) { change in
            printed.withLock { text in
                text = "\(change)"
                dump(change, to: &text)
            }
        }
        try await token ~> Protected("hunter2")
        observation.cancel()
        StateTrace.hook = nil
        let shown = printed.withLock { $0 }
        let events = kept.withLock { $0 }

        let path = scratch.path(of: "secrets/token")
        var status = stat()
        checks.expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o600, "mode 0600")
        checks.expect(textOfFile(path) == "hunter2", "the file has only the secret")
        checks.expect("\(token.value)" == "•••", "it prints as •••")
        checks.expect(
            shown.contains("•••") && !shown.contains("hunter2"),
            "a printed or dumped change does not reveal it"
        )
        checks.expect(events.contains { "\($0)".contains("token") }, "the trace names the key")
        checks.expect(!events.contains { "\($0)".contains("hunter2") }, "the trace has no secret")
    }
}
