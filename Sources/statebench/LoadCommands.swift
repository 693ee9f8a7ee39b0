/// One kind of request, as fast as the server answers.
enum LoadCommand {
    static func run(_ options: Options) throws(BenchError) {
        var plan = try Plan(options, clients: 50, pipeline: 1)
        switch options.text("op", standard: "set") {
        case "set": plan.writePercent = 100
        case "get": plan.writePercent = 0
        case let other: throw .usage("--op expects get or set, not '\(other)'")
        }
        plan.watchers = try options.number("watchers", standard: 0, least: 0)
        plan.watchConnections = try options.number(
            "watch-connections",
            standard: max(1, plan.watchers)
        )
        plan.isWatched = options.has("watched")
        plan.isNumber = options.has("number")
        guard plan.watchers > 0 || !plan.isWatched else {
            throw .usage("--watched needs --watchers")
        }
        try FileDescriptors.raiseLimit()
        let loop = try ClosedLoop(plan)
        let server = try options.number("pid", standard: 0, least: 0)
        guard server > 0 else {
            try loop.run().print()
            return
        }
        // Connecting and watching are not counted.
        let before = try ProcessTable.processorTicks(of: server)
        let measurement = try loop.run()
        let spent = try ProcessTable.processorTicks(of: server) - before
        measurement.print()
        let each = Double(spent * ProcessTable.microsecondsPerTick) / Double(plan.requests)
        print("server_us \(each.rounded(places: 2))")
    }
}

/// Concurrent reads and writes, one request in flight per client.
enum MixedCommand {
    static func run(_ options: Options) throws(BenchError) {
        var plan = try Plan(options, clients: 50, pipeline: 1)
        plan.writePercent = try options.number("writes", standard: 20, least: 0)
        try ClosedLoop(plan).run().print()
    }
}

/// Sets every key once.
enum FillCommand {
    static func run(_ options: Options) throws(BenchError) {
        var plan = try Plan(options, clients: 8, pipeline: 128)
        plan.writePercent = 100
        plan.isSequential = true
        plan.requests = plan.keys
        try ClosedLoop(plan).run().print()
    }
}

extension Plan {
    fileprivate init(
        _ options: Options,
        clients: Int,
        pipeline: Int
    ) throws(BenchError) {
        socket = try options.text("socket")
        self.clients = try options.number("clients", standard: clients)
        self.pipeline = try options.number("pipeline", standard: pipeline)
        requests = try options.number("requests", standard: 100_000)
        keys = try options.number("keys", standard: 100_000)
        valueByteCount = try options.number("value-bytes", standard: 64, least: 0)
        seed = try options.number("seed", standard: 1, least: 0)
        writePercent = 0
        folder = options.text("folder", standard: "")
    }
}
