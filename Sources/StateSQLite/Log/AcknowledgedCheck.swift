import StatePlatform
import StateSystem

/// Checks whether a store has everything that its stamp records as acknowledged.
///
/// Runs before anything is written. The result applies only to the very files that were written
/// last: a replaced database or log, and a database of another generation, count as another store
/// (``StoreStamp/objection(toGeneration:revision:)``).
struct AcknowledgedCheck {
    private let location: StoreLocation
    /// The log that exists before SQLite opens the database and creates one.
    private let logFile: FileIdentity?
    /// Whether the header of the log is damaged, but all of its acknowledged frames are in the
    /// database.
    private let isMoved: Bool

    /// Must be made before the database is opened: closing a second descriptor of it would drop
    /// SQLite's locks.
    init(_ location: StoreLocation) {
        self.location = location
        logFile = FileIdentity(path: location.log)
        isMoved = MovedLog(location, StoreStamp(reading: location.stamp)).isMoved
    }

    /// What is missing of the acknowledged commits; nil if nothing is.
    ///
    /// - Parameters:
    ///   - metadata: `meta` of the store.
    ///   - stamp: Its stamp.
    ///   - revision: The store's last revision.
    ///   - readsLog: Whether to check the frames of the log, which nobody may write meanwhile.
    /// - Returns: A sentence with the newest revisions of the store and of the stamp.
    /// - Throws: ``StateError/Code/corrupt``, naming a row of `meta`; or SQLite's error.
    /// - Complexity: O(*n*) in the bytes of the log up to the last acknowledged commit.
    func finding(
        _ metadata: StoreMetadata,
        _ stamp: StoreStamp,
        revision: Int64,
        readsLog: Bool
    ) throws -> String? {
        let acknowledged = stamp.acknowledged
        guard let log = acknowledged.log, log.file == logFile else { return nil }
        let known = try metadata.identity()
        guard FileIdentity(path: location.database) == known else { return nil }
        let recorded = "\(stamp.path) records revision \(acknowledged.revision) as acknowledged"
        if readsLog, let finding = finding(in: log.position) {
            return "it ends at revision \(revision), but \(recorded): \(finding)"
        }
        guard revision < acknowledged.revision,
            stamp.isOf(generation: try metadata.generation())
        else { return nil }
        return "it ends at revision \(revision), but \(recorded)"
    }

    private func finding(in position: LogPosition) -> String? {
        let descriptor = (try? NamedFile.open(location.log, O_RDONLY | O_NOFOLLOW)) ?? -1
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // An empty log was truncated, or somebody moved all of it into the database: the revision
        // decides.
        guard let header = LogHeader(descriptor) else { return nil }
        guard header.isWhole || isMoved else {
            return "the header of \(location.log) is damaged"
        }
        // The log was restarted since, or was about to be: everything before is in the database.
        guard header.isWhole, header.salts == position.salts else { return nil }
        let count = header.wholeFrameCount(descriptor, upTo: position.frameCount)
        guard count < position.frameCount else { return nil }
        return
            "acknowledged frame \(count + 1) of \(position.frameCount) in \(location.log) "
            + "is damaged"
    }
}
