import StateWire

/// How often commands ran, and how long they took, for INFO.
extension ReportCommands {
    var commandFields: [(String, String)] {
        called.map { verb, counts in
            let total = counts.microseconds
            return (
                "cmdstat_\(verb.name.rawValue)",
                "calls=\(counts.calls),usec=\(Int64(total)),usec_per_call="
                    + "\(hundredths(total / Double(max(1, counts.calls)))),rejected_calls="
                    + "\(counts.rejected),failed_calls=\(counts.failed)"
            )
        }
    }

    var errorFields: [(String, String)] {
        let errors = statistics.errors.sorted { $0.key < $1.key }
        return errors.map { ("errorstat_\($0.key)", "count=\($0.value)") }
    }

    /// The percentiles are upper bounds: powers of two.
    var latencyFields: [(String, String)] {
        called.filter { $0.1.measured > 0 }.map { verb, counts in
            let parts = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].map { name, share in
                "\(name)=\(counts.bound(of: share)).000"
            }
            return (
                "latency_percentiles_usec_\(verb.name.rawValue)", parts.joined(separator: ",")
            )
        }
    }

    private var called: [(Verb, CommandStatistics.Counts)] {
        Verb.all.map { ($0, statistics.counts[$0.index]) }
            .filter { $1.calls + $1.rejected + $1.failed > 0 }
    }

    private func hundredths(_ number: Double) -> String {
        let hundredths = Int64((number * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}

extension CommandStatistics.Counts {
    /// The least power of two, in microseconds, that at least a share of the measured calls did not
    /// exceed.
    fileprivate func bound(of share: Double) -> Int64 {
        let sum = durations.reduce(0, +)
        var reached = 0
        for (place, count) in durations.enumerated() {
            reached += count
            if Double(reached) >= share * Double(sum) { return 1 << Int64(place) }
        }
        return 0
    }
}
