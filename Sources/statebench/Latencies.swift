/// Every latency that was measured, for exact percentiles.
struct Latencies {
    private var nanoseconds: [UInt32] = []

    init(expecting count: Int) { nanoseconds.reserveCapacity(count) }

    var count: Int { nanoseconds.count }

    mutating func add(_ duration: UInt64) {
        nanoseconds.append(UInt32(clamping: duration))
    }

    /// `name_p50_us 190.1` and so on, one a line; nothing where nothing was measured.
    func lines(_ name: String) -> [String] {
        guard !nanoseconds.isEmpty else { return [] }
        let sorted = nanoseconds.sorted()
        let ranks = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)]
        return ranks.map { label, share in
            let index = Int((Double(sorted.count) * share).rounded(.up)) - 1
            return
                "\(name)_\(label)_us \((Double(sorted[max(0, index)]) / 1000).rounded(places: 1))"
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
