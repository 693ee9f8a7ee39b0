import StateEngine
import StateLog
import StateModel
import StateSystem
import StateTestSupport

/// A log alone as storage: all of it is read at each start.
final class LogBacking: Backing {
    private struct State {
        var log: StateLog?
        var lock: OwnerLock?
        /// The contents of the last frame, whose outcome may be unknown.
        var last: (contents: [UInt8], time: Int64) = ([], 0)
    }

    let isPersistent = true
    var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.keepsMetadata = true
        return capabilities
    }
    private let path: String
    /// Makes the directory of the log.
    private let files: @Sendable () throws -> any LogFiles
    private let options: StateLog.Options
    private let state = Observed(State())

    init(
        directory: String,
        _ options: StateLog.Options = StateLog.Options(),
        files: (@Sendable () throws -> any LogFiles)? = nil
    ) {
        (path, self.options) = (directory, options)
        self.files = files ?? { try LogDirectory(directory) }
    }

    func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        let lock = try OwnerLock(path: path + ".lock", for: path)
        var loaded = LoadedStore(epoch: .random(), revision: 0)
        let log = try StateLog(try files(), options) { contents, time in
            var (revision, texts) = (loaded.revision, loaded.metadata)
            try CommitCoder.read(contents, at: time) { change, _ in
                receive(change)
            } commit: { number, _, _ in
                revision = max(revision, number)
            } metadata: { name, text in
                texts[name] = text
            }
            (loaded.revision, loaded.metadata) = (revision, texts)
        }
        loaded.epoch = log.epoch
        state.update { ($0.log, $0.lock) = (log, lock) }
        return loaded
    }

    func commit(_ batch: borrowing CommitBatch) throws {
        let time = SystemClock.wallMilliseconds()
        var coder = CommitCoder(at: time)
        _ = coder.append(batch, carryingBelow: 0)
        let contents = coder.commits
        try state.update { state in
            state.last = (contents.bytes, time)
            try state.log?.append(contents, at: time)
            try state.log?.sync()
        }
    }

    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        try state.update { state in
            guard let log = state.log else { throw StateError(.storage, "the log is closed") }
            guard try log.dropUnknown() > 0 else { return [:] }
            var metadata: [String: String] = [:]
            try state.last.contents.withUnsafeBytes { contents in
                try CommitCoder.read(contents, at: state.last.time) { change, _ in
                    receive(change)
                } metadata: { name, text in
                    metadata[name] = text
                }
            }
            return metadata
        }
    }

    func close() { state.update { ($0.log, $0.lock) = (nil, nil) } }
}
