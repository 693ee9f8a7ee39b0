public import StateModel
import StateWire

extension Client {
    /// How far a watch of some client of the daemon is.
    public struct WatchReport: Hashable, Sendable {
        /// The client's number, as CLIENT LIST has it.
        public let client: Int64
        /// The watch's number on that client's connection.
        public let watch: Int64
        /// The client's process; a hint.
        public let pid: Int64
        /// Its user.
        public let uid: Int64
        /// The name that it gave itself.
        public let name: String
        /// What is watched, as it was written.
        public let patterns: [[UInt8]]
        /// The options of the watch.
        public let options: [String]
        /// `synced`, `catching up` or `blocked`.
        public let state: String
        /// All changes up to here were told; 0 while a state is.
        public let revision: Int64
        /// How many commits that is behind what is durable.
        public let lag: Int64
        /// Bytes that wait for the client.
        public let waiting: Int64
        /// Keys that changed and wait for the next round of latest values.
        public let marks: Int64
        /// Values of the round of latest values that wait.
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
                marks: number("marks"),
                values: number("values")
            )
        }
    }
}
