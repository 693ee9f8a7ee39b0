import StateEngine
import StateWire

/// One watch of the daemon, on one connection; the connection's thread alone uses it.
final class WireWatch {
    /// Whose keys it follows.
    let keys: WatchedKeys
    let patterns: [Pattern]
    private let isSnapshot: Bool
    /// Its number on the connection; 0 until the daemon has told it.
    private(set) var number: Int64 = 0
    private var epoch = Epoch(bits: 0)
    /// What is known of a state that is being told; nil where none is.
    private var pieces: [Key: KeyspaceChange]?

    init(_ keys: WatchedKeys, _ patterns: [Pattern], isSnapshot: Bool) {
        self.keys = keys
        self.patterns = patterns
        self.isSnapshot = isSnapshot
    }

    var request: RequestWriter {
        var request = RequestWriter()
        request.begin(argumentCount: patterns.count + (isSnapshot ? 3 : 2))
        request.append(argument: "STATE.WATCH")
        for pattern in patterns { request.append(argument: pattern.argument) }
        if isSnapshot { request.append(argument: "SNAPSHOT") }
        request.append(argument: "BY")
        return request
    }

    /// Whether it is not begun, or what it has told is not whole.
    var isBusy: Bool { number == 0 || isBehind }

    /// Whether what it has told is not whole: a state is being told.
    var isBehind: Bool { pieces != nil }

    func begin(number: Int64, epoch: Epoch) {
        self.number = number
        self.epoch = epoch
        if isSnapshot { beginPieces() }
    }

    func revision(_ number: Int64) -> Revision { Revision(epoch: epoch, number: number) }

    // MARK: Pieces

    func beginPieces() { pieces = [:] }

    func add(_ change: KeyspaceChange) {
        pieces?[change.key] = change.value == nil ? nil : change
    }

    /// The state, which is whole now.
    func endPieces() -> some Sequence<KeyspaceChange> {
        defer { pieces = nil }
        return (pieces ?? [:]).values
    }
}
