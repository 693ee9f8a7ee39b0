import StateEngine
import StateLog
import StateSQLite
import StateServer
import StateTestSupport
import StateWire
import Testing

/// A served keyspace whose values are on disk, so that its watches can be told what was.
final class StoredServer {
    let directory: TemporaryDirectory
    let server: ServedKeyspace
    private let backing: SQLiteBacking

    /// Where its log is.
    let files: FaultyFiles

    /// - Parameter adjust: Changes the options.
    /// - Throws: If the store cannot be made.
    init(_ adjust: (inout ServerOptions) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        let location = StoreLocation(directory: directory.path(of: "data"))
        let empty = SQLiteBacking(directory: location.directory)
        _ = try empty.load { _ in }
        empty.close()
        let files = FaultyFiles(try LogDirectory(location.logDirectory))
        self.files = files
        var options = SQLiteBacking.Options()
        options.history = HistoryLimits()
        backing = SQLiteBacking(location, log: location.logDirectory, options) { _ in files }
        server = try ServedKeyspace(backing, adjust)
    }

    func connect(_ version: Int = 3) throws -> Peer { try server.connect(version) }

    var epoch: String { "\(server.keyspace.epoch)" }

    /// Everything that was committed, as the store has it.
    func committed() throws -> [HeldBacking.Change] {
        var changes: [HeldBacking.Change] = []
        let history = try backing.openHistory()
        try history.snapshot { _ in
            let start = HistoryPlace.end(of: 0)
            _ = try history.forEachChange(after: start, through: .max) { change in
                changes.append(
                    HeldBacking.Change(
                        revision: change.revision,
                        ordinal: change.ordinal,
                        key: Array(change.key),
                        value: change.value.map { Array($0) },
                        created: change.created
                    )
                )
                return true
            }
        }
        return changes
    }

    /// What STATE.WATCHES tells of a client's watch.
    func report(_ client: Int64, _ watch: Int64 = 1) throws -> Reply? {
        try connect().ask("STATE.WATCHES").elements?
            .first { $0["client"] == .integer(client) && $0["watch"] == .integer(watch) }
    }
}

extension Peer {
    /// Its number.
    func identify() throws -> Int64 { try #require(try ask("CLIENT ID").integerValue) }
}

extension Reply {
    /// `state.change` and so on; nil for what is no push of a watch.
    var pushKind: String? {
        guard case .push(let parts) = self else { return nil }
        return parts.first?.textValue
    }

    /// The revision of a push of a watch.
    var pushRevision: Int64 { elements?[2].integerValue ?? -1 }
}
