import StateEtcd

/// Measures etcd by its own protocol, as what a cluster of daemons is compared with.
enum EtcdCommand {
    static func run(_ options: Options) throws(BenchError) {
        let endpoint = try endpoint("endpoint", options)
        let folder = options.text("folder", standard: "")
        let byteCount = try options.number(
            "value-bytes",
            standard: 64,
            least: DeliveryStamp.byteCount + 1
        )
        guard options.text("watch-endpoint", standard: "").isEmpty else {
            let watched = try self.endpoint("watch-endpoint", options)
            let rate = try options.number("rate", standard: 100)
            let key = "\(folder)delivery/key"
            let writer = EtcdWriter(
                endpoint,
                key,
                byteCount,
                rate: rate,
                isGuarded: options.has("guarded")
            )
            let seconds = try options.number("seconds", standard: 5)
            try EtcdDelivery(watched, "\(folder)delivery/", key)
                .run(writer, rate, seconds: seconds)
            return
        }
        let plan = EtcdPuts.Plan(
            endpoint: endpoint,
            connections: try options.number("connections", standard: 50),
            streams: try options.number("streams", standard: 1),
            requests: try options.number("requests", standard: 10_000),
            keys: try options.number("keys", standard: 10_000),
            valueByteCount: byteCount,
            folder: folder,
            isGuarded: options.has("guarded"),
            seed: try options.number("seed", standard: 1, least: 0)
        )
        try EtcdPuts(plan).run().print()
    }

    private static func endpoint(
        _ name: String,
        _ options: Options
    ) throws(BenchError) -> Endpoint {
        let text = try options.text(name)
        guard let endpoint = Endpoint(text) else {
            throw .usage("--\(name) expects a URL such as http://127.0.0.1:2379, not '\(text)'")
        }
        return endpoint
    }
}

extension BenchError {
    init(_ failure: LinkFailure) {
        switch failure {
        case .daemon(let text, _), .cluster(let text), .mustCompare(let text): self = .failed(text)
        }
    }

    /// Makes a failure of a member one of this program.
    static func ofEtcd<R>(_ body: () throws(LinkFailure) -> R) throws(BenchError) -> R {
        do throws(LinkFailure) { return try body() } catch { throw BenchError(error) }
    }
}
