import CLinux
import StateEngine

/// Ends attempts that would repeat forever, because storage refuses their base as old but reports
/// nothing newer.
struct StalePatience {
    private static let nanoseconds: Int64 = 5_000_000_000
    private var reads: [Revision] = []
    private var end: Int64 = 0

    /// - Throws: ``StateError/Code/conflict``, naming `key`, if only these revisions were read for
    ///   5 seconds.
    mutating func check(_ reads: [Revision], of key: Key) throws(StateError) {
        let now = clinux_monotonic_nanoseconds()
        if reads != self.reads {
            self.reads = reads
            end = now + Self.nanoseconds
        }
        guard now > end else { return }
        throw StateError(
            .conflict,
            "key '\(key)': storage refused its value as outdated, but reported no newer one for 5 s"
        )
    }
}
