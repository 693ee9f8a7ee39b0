import StateEngine

/// The watches of one client, and the order in which they are served.
struct WatchSet {
    /// By their numbers.
    var all: [Int: ConnectionWatcher] = [:]
    /// The number of the newest watch.
    var lastNumber = 0
    /// The number of patterns of all watches, and their bytes.
    var patternCount = 0
    var byteCount = 0
    /// The watch for which the history is being read: one at a time, in turn.
    var reader: ConnectionWatcher?
    /// The number of the last such watch.
    var lastReader = 0
    /// The number of the watch that got the last piece or part of a round.
    var lastServed = 0
    /// The bytes of latest values that they still have to send; nil if there were none.
    var owed: OwedBytes?

    /// Whether a watch can continue as soon as there is room.
    func canAdvance(_ watcher: ConnectionWatcher) -> Bool {
        watcher.watcher.canAdvance && (reader == nil || !watcher.readsHistory)
    }

    /// The position of a watch in the order that begins after the watch that read last.
    func turn(of watcher: ConnectionWatcher) -> Int {
        watcher.number > lastReader ? watcher.number - lastReader : watcher.number + Int.max / 2
    }

    /// Watches in the order of their numbers, beginning after the one that was served last.
    func inTurn(_ watchers: [ConnectionWatcher]) -> [ConnectionWatcher] {
        guard watchers.count > 1 else { return watchers }
        let sorted = watchers.sorted { $0.number < $1.number }
        let start = sorted.firstIndex { $0.number > lastServed } ?? 0
        return Array(sorted[start...] + sorted[..<start])
    }
}
