package import StateModel
import StateWire

/// Backups: the store at one revision, piece by piece.
extension Client {
    /// The beginning of a backup.
    package struct BackupStart: Hashable, Sendable {
        /// The revision that it shows.
        package let revision: Int64
        /// The store.
        package let epoch: String
        /// The number of keys then.
        package let keyCount: Int64
        /// The first bytes of the file.
        package let piece: [UInt8]
    }

    /// Begins a backup on this connection.
    ///
    /// - Parameters:
    ///   - includesHistory: Also past changes and the records of handlers.
    ///   - since: Only the changes after a revision of an epoch; needs the history.
    /// - Returns: What it shows, and the first bytes.
    /// - Throws: ``StateError/Code/noPermission``; ``StateError/Code/conflict`` if the store has
    ///   another epoch; any other error of the daemon, or ``StateError/Code/unreachable``.
    package func beginBackup(
        includesHistory: Bool = true,
        since: (revision: Int64, epoch: String)? = nil
    ) throws(StateError) -> BackupStart {
        var words = ["BEGIN"]
        if !includesHistory { words.append("NOHISTORY") }
        if let since { words += ["SINCE", String(since.revision), "EPOCH", since.epoch] }
        let reply = try ask("STATE.BACKUP", [], words: words)
        return BackupStart(
            revision: try reply.number("revision"),
            epoch: try reply.text("epoch"),
            keyCount: try reply.number("keys"),
            piece: reply["piece"]?.byteValue ?? []
        )
    }

    /// The next bytes of the file, perhaps none yet; nil at its end.
    ///
    /// The daemon removes nothing from the history for a minute after each piece.
    ///
    /// - Throws: ``StateError/Code/compacted`` if it did nevertheless, because the last piece was
    ///   asked for longer ago: begin again; any other error of the daemon, or
    ///   ``StateError/Code/unreachable``.
    package func nextBackupPiece() throws(StateError) -> [UInt8]? {
        try call([Array("STATE.BACKUP".utf8), Array("NEXT".utf8)], .needsRESP3).byteValue
    }
}

extension Client {
    /// The metrics of the daemon, in the text format of Prometheus.
    ///
    /// - Throws: ``StateError/Code/noPermission``; any other error of the daemon, or
    ///   ``StateError/Code/unreachable``.
    package func metrics() throws(StateError) -> [UInt8] {
        try call([Array("STATE.METRICS".utf8)], .needsRESP3).byteValue ?? []
    }
}
