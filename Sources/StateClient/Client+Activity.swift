package import StateModel
import StateWire

extension Client {
    /// How often a key, or the keys of a writer, were changed since the daemon counts, and lately.
    package struct ActivityCount: Sendable {
        /// The key; or the writer, as `uid:gid:pid:command:client`.
        package let name: [UInt8]
        package let changes: Int64
        /// The bytes of keys and values.
        package let bytes: Int64
        /// A mean of the last seconds, in which a change weighs half as much for each second.
        package let changesPerSecond: Double
        package let bytesPerSecond: Double
    }

    /// What changes, and who changes it.
    package struct Activity: Sendable {
        /// When the daemon began to count: milliseconds since 1970.
        package let since: Int64
        /// The busiest lately first.
        package let keys: [ActivityCount]
        package let writers: [ActivityCount]
    }

    /// The busiest keys and writers.
    ///
    /// The daemon counts while somebody asks, every 10 s at least.
    ///
    /// - Throws: ``StateError/Code/noPermission`` without admin rights;
    ///   ``StateError/Code/unreachable``.
    package func activity() throws(StateError) -> Activity {
        let reply = try ask("STATE.TOP", [])
        func counts(_ name: String) throws(StateError) -> [ActivityCount] {
            try reply.rows(name).map { row throws(StateError) in
                ActivityCount(
                    name: try row.bytes(0),
                    changes: try row.number(1),
                    bytes: try row.number(2),
                    changesPerSecond: Double(try row.number(3)) / 1_000,
                    bytesPerSecond: Double(try row.number(4)) / 1_000
                )
            }
        }
        return Activity(
            since: try reply.number("since"),
            keys: try counts("keys"),
            writers: try counts("writers")
        )
    }
}
