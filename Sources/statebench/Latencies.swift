/// Every latency that was measured, for exact percentiles.
struct Latencies {
    private var nanoseconds: [UInt32] = []

    init(expecting count: Int) { nanoseconds.reserveCapacity(count) }

    var count: Int { nanoseconds.count }

    mutating func add(_ duration: UInt64) {
        nanoseconds.append(UInt32(clamping: duration))
    }

    /// The latency that this share of them does not exceed; 0 if there are none.
    func microseconds(at share: Double) -> Double {
        guard !nanoseconds.isEmpty else { return 0 }
        let index = Int((Double(count) * share).rounded(.up)) - 1
        return (Double(nanoseconds.sorted()[max(0, index)]) / 1000).rounded(places: 1)
    }

    /// `name_p50_us 190.1` and so on, one on each line; empty if nothing was measured.
    func lines(_ name: String) -> [String] {
        guard !nanoseconds.isEmpty else { return [] }
        let ranks = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)]
        return ranks.map { label, share in
            "\(name)_\(label)_us \(microseconds(at: share))"
        }
    }
}

extension Double {
    func rounded(places: Int) -> Double {
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        return (self * scale).rounded() / scale
    }
}
