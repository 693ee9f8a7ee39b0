import StateEngine

/// The watches of one client, and which of them was served last.
struct WatchSet {
    /// By their numbers.
    var all: [Int: ConnectionWatcher] = [:]
    /// The number that was given last.
    var lastNumber = 0
    /// Patterns of all watches, and the bytes that they take.
    var patternCount = 0
    var byteCount = 0
    /// The watch for which the history is read: one at a time, each in its turn.
    var reader: ConnectionWatcher?
    /// The number of the watch that it was read for last.
    var lastReader = 0
    /// The number of the watch that was sent a piece or a part of a round last.
    var lastServed = 0
    /// What they owe of latest values; nil if there was none.
    var owed: OwedBytes?

    /// Whether something can be done for a watch as soon as there is room.
    func canAdvance(_ watcher: ConnectionWatcher) -> Bool {
        watcher.watcher.canAdvance && (reader == nil || !watcher.readsHistory)
    }

    /// Where a watch stands in the round that begins behind the one that read last.
    func turn(of watcher: ConnectionWatcher) -> Int {
        watcher.number > lastReader ? watcher.number - lastReader : watcher.number + Int.max / 2
    }

    /// Watches in the order of their numbers, but first those behind the one that was served last.
    func inTurn(_ watchers: [ConnectionWatcher]) -> [ConnectionWatcher] {
        guard watchers.count > 1 else { return watchers }
        let sorted = watchers.sorted { $0.number < $1.number }
        let start = sorted.firstIndex { $0.number > lastServed } ?? 0
        return Array(sorted[start...] + sorted[..<start])
    }
}
