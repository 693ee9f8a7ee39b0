/// The lease of a value that ends by itself: its number is the time.
///
/// So the time comes with each event and each row, a change without a lease removes it, and etcd
/// deletes the key if no daemon is left that does. Daemons delete it at its time: a lease
/// begins anew when etcd has another leader.
enum MirrorLease {
    /// The upper bytes of the number, `ST`: other leases have random numbers.
    private static let tag: Int64 = 0x5354 << 48
    private static let timeMask: Int64 = 1 << 48 - 1
    /// So much later than the daemons etcd deletes the key, in seconds.
    private static let margin: Int64 = 60

    /// The number of the lease of keys that end at a time in milliseconds since 1970, below 2⁴⁸.
    static func number(of time: Int64) -> Int64 { tag | time & timeMask }

    /// When a key with this lease ends, in milliseconds since 1970; nil if it is the lease of others.
    static func deadline(of number: Int64) -> Int64? {
        number & ~timeMask == tag ? number & timeMask : nil
    }

    /// A `LeaseGrantRequest`.
    ///
    /// - Parameters:
    ///   - time: When the keys end, in milliseconds since 1970.
    ///   - now: The time.
    /// - Returns: The message.
    static func grant(_ time: Int64, at now: Int64) -> [UInt8] {
        // MaxLeaseTTL: https://github.com/etcd-io/etcd/blob/v3.4.23/lease/lessor.go
        let seconds = min(max(0, time - now) / 1_000 + margin, 9_000_000_000)
        var writer = ProtobufWriter()
        writer.write(1, seconds)
        writer.write(2, number(of: time))
        return writer.bytes
    }

    /// Whether etcd has the lease, as the status of a call says that should have granted it.
    static func isThere(_ status: HTTP2Connection.Status) -> Bool {
        status.code == 0 || status.code == 9 && status.message.contains("lease already exists")
    }
}
