import CLinux
import StateEngine

/// Writes rows of `meta`, in the open transaction.
package final class MetaWriter {
    /// The prefix of metadata names; the store's own names never have it.
    package static let metadataPrefix = "handler:"

    private let upsert: SQLiteStatement
    private let remove: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        upsert = try connection.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?, ?)")
        remove = try connection.prepare("DELETE FROM meta WHERE name=?")
    }

    /// Writes a row, or removes it if `text` is nil.
    ///
    /// - Throws: SQLite's error; the transaction must be rolled back.
    func write(_ name: String, _ text: String?) throws(SQLiteFailure) {
        guard let text else {
            remove.bind(1, text: name)
            return try remove.run()
        }
        upsert.bind(1, text: name)
        upsert.bind(2, text: text)
        upsert.bind(3, Int64(MetaWriter.checksum(name, text)))
        try upsert.run()
    }

    /// The checksum of a row: CRC-32C of the name, a zero byte and the text.
    package static func checksum(_ name: String, _ text: String) -> UInt32 {
        Array("\(name)\0\(text)".utf8)
            .withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
    }
}
