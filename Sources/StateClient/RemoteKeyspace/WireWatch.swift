import StateModel
import StateWire

/// One watch of the daemon, on one connection; the connection's thread alone uses it.
final class WireWatch {
    /// Whose keys it follows.
    let keys: WatchedKeys
    let patterns: [Pattern]
    private let beginning: Beginning
    /// Its number on the connection; 0 until the daemon has told it.
    private(set) var number: Int64 = 0
    private var epoch = Epoch(bits: 0)
    /// What is known of a state that is being told; nil where none is.
    private var pieces: [Key: KeyspaceChange]?

    /// What it is told first.
    enum Beginning {
        /// The state.
        case snapshot
        /// Nothing: the commits from now on.
        case now
        /// The commits after this one, or a gap and the state.
        case after(Revision)
    }

    /// Where it has to come to be as far as the daemon was when it was resumed; nil: it is.
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

    /// Whether it is not begun, or what it has told is not whole.
    var isBusy: Bool { !isBegun || isBehind || isResuming }

    /// Whether the daemon has answered.
    var isBegun: Bool { number > 0 }

    /// Whether commits are still to come that were made before it was resumed.
    var isResuming: Bool { resumingTo != nil }

    /// Whether what it has told is not whole: a state is being told.
    var isBehind: Bool { pieces != nil }

    /// The daemon has begun it, at its revision `current`.
    func begin(number: Int64, at current: Revision) {
        self.number = number
        epoch = current.epoch
        switch beginning {
        case .snapshot: beginPieces()
        case .now: break
        case .after: resumingTo = current.number
        }
    }

    /// It has told everything up to `revision`.
    ///
    /// - Returns: Whether it is current by that, and was not before.
    func noteDelivered(_ revision: Int64) -> Bool {
        guard let wanted = resumingTo, revision >= wanted else { return false }
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

    /// The state, which is whole now.
    func endPieces() -> some Sequence<KeyspaceChange> {
        defer { pieces = nil }
        return (pieces ?? [:]).values
    }
}
