import StateModel
import StateWire

/// One watch of the daemon, on one connection; only the connection's thread uses it.
final class WireWatch {
    /// The watched keys that it serves.
    let keys: WatchedKeys
    let patterns: [Pattern]
    private let beginning: Beginning
    /// Its number on the connection; 0 until the daemon reports it.
    private(set) var number: Int64 = 0
    private var epoch = Epoch(bits: 0)
    /// The part of a state that has arrived so far; nil if none is in progress.
    private var pieces: [Key: KeyspaceChange]?

    /// What it delivers first.
    enum Beginning {
        /// The state.
        case snapshot
        /// Nothing: the commits from now on.
        case now
        /// The commits after this one, or a gap and the state.
        case after(Revision)
    }

    /// The revision at which a resumed watch has caught up; nil: it has.
    private var resumingTo: Int64?

    init(_ keys: WatchedKeys, _ patterns: [Pattern], _ beginning: Beginning) {
        self.keys = keys
        self.patterns = patterns
        self.beginning = beginning
    }

    var request: RequestWriter {
        var arguments = [Array("STATE.WATCH".utf8)] + patterns.map(\.argument)
        switch beginning {
        case .snapshot: arguments.add("SNAPSHOT")
        case .now: break
        case .after(let revision):
            arguments.add("FROM", "\(revision.number)", "EPOCH", "\(revision.epoch)")
        }
        arguments.add("BY")
        return RequestWriter(arguments)
    }

    /// Whether it is not started, or its state is incomplete.
    var isBusy: Bool { !isBegun || isBehind || isResuming }

    /// Whether the daemon has answered.
    var isBegun: Bool { number > 0 }

    /// Whether commits from before it was resumed are still to come.
    var isResuming: Bool { resumingTo != nil }

    /// Whether a state is in progress, so that its state is incomplete.
    var isBehind: Bool { pieces != nil }

    /// The daemon has started it, at its revision `current`.
    func begin(number: Int64, at current: Revision) {
        self.number = number
        epoch = current.epoch
        switch beginning {
        case .snapshot: beginPieces()
        case .now: break
        case .after: resumingTo = current.number
        }
    }

    /// It has delivered everything up to `revision`.
    ///
    /// - Returns: Whether this made it current.
    func noteDelivered(_ revision: Int64) -> Bool {
        guard let target = resumingTo, revision >= target else { return false }
        resumingTo = nil
        return true
    }

    func revision(_ number: Int64) -> Revision { Revision(epoch: epoch, number: number) }

    // MARK: Pieces

    func beginPieces() {
        pieces = [:]
        resumingTo = nil
    }

    func add(_ change: KeyspaceChange) {
        pieces?[change.key] = change.value == nil ? nil : change
    }

    /// The state, which is now complete.
    func endPieces() -> some Sequence<KeyspaceChange> {
        defer { pieces = nil }
        return (pieces ?? [:]).values
    }
}
