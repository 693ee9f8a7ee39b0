import StateClient
import StateModel

/// Whether the daemon serves and stores.
struct Health {
    enum Verdict: Int32 {
        case ok = 0
        case readOnly = 1
        case unreachable = 2
        case damaged = 3
        case degraded = 4

        var word: String {
            switch self {
            case .ok: "ok"
            case .readOnly: "read-only"
            case .unreachable: "unreachable"
            case .damaged: "damaged"
            case .degraded: "degraded"
            }
        }
    }

    let verdict: Verdict
    /// Why; empty if it is well.
    let reason: String

    /// Asks the daemon.
    init(_ invocation: Invocation) throws(Failure) {
        let fields: [Client.StatusField]
        do throws(StateError) {
            fields = try invocation.newClient().status()
        } catch {
            guard error.code == .unreachable else { throw .refused(error) }
            (verdict, reason) = (.unreachable, error.message)
            return
        }
        func issue(_ name: String) -> String? {
            fields.first { $0.name == name && $0.text != "ok" }?.text
        }
        if let damage = issue("store") {
            (verdict, reason) = (.damaged, damage)
        } else if let refusal = issue("storage") {
            (verdict, reason) = (.readOnly, refusal)
        } else if let failure = issue("settling") {
            (verdict, reason) = (.degraded, failure)
        } else {
            (verdict, reason) = (.ok, "")
        }
    }
}

extension Statectl {
    /// `health`: whether the daemon serves and stores.
    static func health(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let health = try Health(invocation)
        if invocation.isJSON {
            output.write(json: [
                "health": .text(health.verdict.word), "reason": .text(health.reason),
            ])
        } else {
            let reason = health.reason.isEmpty ? "" : ": \(health.reason)"
            output.write("\(health.verdict.word)\(StateError.printable(reason))\n")
        }
        if health.verdict != .ok { throw .condition(health.verdict.rawValue) }
    }

    /// `metrics --textfile FILE`: replaces the file, so that a collector reads all of it or the one
    /// before.
    private static func writeTextfile(
        _ path: [UInt8],
        _ invocation: Invocation
    ) throws(Failure) {
        guard !invocation.has("--http"), path != "-".bytes else {
            throw .usage("metrics: --textfile takes the name of a file, and goes without --http")
        }
        let client = try invocation.connect()
        let metrics = try attempt(try client.metrics())
        // Another user runs the collector.
        let target = try BackupTarget(path, mode: 0o644, replacesAll: true)
        try target.write(metrics)
        try target.finish()
    }

    /// `metrics`: for Prometheus.
    static func metrics(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard !invocation.isJSON else {
            throw .usage("metrics prints Prometheus's text; 'statectl status --json' prints JSON")
        }
        if let path = invocation.value("--textfile") {
            return try writeTextfile(path, invocation)
        }
        guard invocation.has("--http") else {
            let client = try invocation.connect()
            return output.write(try attempt(try client.metrics()))
        }
        var exchange = HTTPExchange()
        exchange.answer { path throws(Failure) in
            switch path {
            case "/metrics":
                let client = try invocation.connect()
                return (200, try attempt(try client.metrics()))
            case "/health":
                let health = try Health(invocation)
                let text = "\(health.verdict.word) \(health.reason)\n"
                return (health.verdict == .ok ? 200 : 503, text.bytes)
            default: return (404, "GET /metrics or /health\n".bytes)
            }
        }
        output.write(exchange.reply)
    }
}
