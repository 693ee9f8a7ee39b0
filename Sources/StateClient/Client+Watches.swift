public import StateModel
import StateWire

extension Client {
    /// The progress of a watch of any client of the daemon.
    public struct WatchReport: Hashable, Sendable {
        /// The client's number, as in CLIENT LIST.
        public let client: Int64
        /// The watch's number on that client's connection.
        public let watch: Int64
        /// The client's process id; only a hint.
        public let pid: Int64
        /// The client's uid.
        public let uid: Int64
        /// The name that the client gave itself.
        public let name: String
        /// The watched patterns, as they were written.
        public let patterns: [[UInt8]]
        /// The options of the watch.
        public let options: [String]
        /// `synced`, `catching up` or `blocked`.
        public let state: String
        /// All changes up to this revision were delivered; 0 while the initial state is being
        /// delivered.
        public let revision: Int64
        /// How many commits the watch is behind the durable revision.
        public let lag: Int64
        /// Bytes that wait for the client.
        public let waiting: Int64
        /// Keys that changed and wait for the next round of latest values.
        public let pending: Int64
        /// Values that wait in the present round of latest values.
        public let values: Int64
    }

    /// All watches of the daemon, in order of client and watch.
    ///
    /// - Throws: ``StateError/Code/unreachable``.
    public func watches() throws(StateError) -> [WatchReport] {
        try ask("STATE.WATCHES").rows().map { row in
            func number(_ name: String) -> Int64 { row[name]?.integerValue ?? 0 }
            return WatchReport(
                client: number("client"),
                watch: number("watch"),
                pid: number("pid"),
                uid: number("uid"),
                name: row["name"]?.textValue ?? "",
                patterns: row["patterns"]?.elements?.compactMap(\.byteValue) ?? [],
                options: row["options"]?.elements?.compactMap(\.textValue) ?? [],
                state: row["state"]?.textValue ?? "",
                revision: number("revision"),
                lag: number("lag"),
                waiting: number("waiting"),
                pending: number("pending"),
                values: number("values")
            )
        }
    }
}
