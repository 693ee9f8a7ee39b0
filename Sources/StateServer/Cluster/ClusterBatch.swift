import StateEngine
import StateWire

/// The commands of the next batch: none changes what another has read or changed, for etcd
/// compares all before it changes anything.
struct FormingBatch {
    /// So many commands are decided together at most.
    private static let limit = 64
    /// So many of them may be keys that have ended, however many commands wait.
    private static let reservedCount = 8

    private let bounds: ClusterWrites.Bounds
    private(set) var writes: [ClusterWrite] = []
    /// What they do, and then the keys that have ended by themselves.
    private(set) var attempts: [ClusterAttempt] = []
    private var changed: Set<[UInt8]> = []
    private var read: Set<[UInt8]> = []
    private var byteCount = 0
    private var operationCount = 0
    private(set) var isFull = false

    /// How many commands there is room for.
    private let commandCount: Int
    /// Whether no command can be added.
    var hasAllCommands: Bool { isFull || writes.count == commandCount }

    /// - Parameters:
    ///   - bounds: What etcd takes.
    ///   - endedCount: How many keys that have ended wait for it.
    init(_ bounds: ClusterWrites.Bounds, endedCount: Int) {
        self.bounds = bounds
        commandCount = FormingBatch.limit - min(endedCount, FormingBatch.reservedCount)
    }

    /// - Returns: False if it must wait for the next one.
    mutating func add(_ write: ClusterWrite) -> Bool {
        guard !hasAllCommands, add(write.attempt, isAlone: write.isAlone) else { return false }
        writes.append(write)
        return true
    }

    /// Adds the delete of a key that has ended by itself, behind all commands.
    ///
    /// - Returns: False if it must wait for the next one.
    mutating func addEnd(_ attempt: ClusterAttempt) -> Bool { add(attempt, isAlone: false) }

    private mutating func add(_ attempt: ClusterAttempt, isAlone: Bool) -> Bool {
        // What has ranges is not compared with others, and a signature for all is one for all.
        let isAlone =
            isAlone || attempt.isAlone || !attempt.ranges.isEmpty || !attempt.deleted.isEmpty
            || attempt.changes.count > ClusterAttempt.namedCount
        guard !isFull, !isAlone || attempts.isEmpty else { return false }
        let operationCount = max(self.operationCount, attempt.operationCount)
        guard bounds.operationCount >= operationCount + attempts.count + 2,
            bounds.byteCount >= byteCount + attempt.byteCount
        else { return false }
        for change in attempt.changes
        where changed.contains(change.key) || read.contains(change.key) {
            return false
        }
        for key in attempt.reads.keys where changed.contains(key) { return false }
        attempts.append(attempt)
        self.operationCount = operationCount
        byteCount += attempt.byteCount
        changed.formUnion(attempt.changes.lazy.map(\.key))
        read.formUnion(attempt.reads.keys)
        isFull = isAlone || attempts.count == FormingBatch.limit
        return true
    }
}

extension ClusterWrites.Bounds {
    /// Whether a command fits, alone.
    func allow(_ attempt: ClusterAttempt) -> Bool {
        attempt.operationCount + 2 <= operationCount && attempt.byteCount <= byteCount
    }

    func excess(of attempt: ClusterAttempt) -> StateError {
        StateError(
            .tooBig,
            attempt.byteCount > byteCount
                ? "the change has \(attempt.byteCount) bytes, and the cluster takes \(byteCount) "
                    + "(--max-request-bytes of etcd and of stated-etcd)"
                : "the change has \(attempt.operationCount) operations or conditions, and the cluster "
                    + "takes \(operationCount - 2) (--max-txn-ops of etcd and of stated-etcd)"
        )
    }
}

extension ByteBuffer {
    /// Writes the push that gives the link a batch.
    ///
    /// ```
    /// state.batch  number  position  who  [write…]
    /// write        [PRESENT key | ABSENT key | RANGE start end | PUT key value
    ///               | UNTIL key value milliseconds | DELETE key | CLEAR start end …]
    /// ```
    mutating func write(_ attempts: [ClusterAttempt], number: Int64, at position: Int64) {
        append(">5\r\n")
        writeBulk("state.batch")
        writeInteger(number)
        writeInteger(position)
        writeBulk(Array(attempts.map(\.line).joined(separator: "\u{1E}".utf8)))
        writeArray(attempts.count)
        for attempt in attempts {
            let words = attempt.words
            writeArray(words.count)
            for word in words { writeBulk(word) }
        }
    }
}

extension ClusterAttempt {
    /// Who changes which keys, for those who meet the changes: the cause, and the keys, or `*`.
    fileprivate var line: [UInt8] {
        let isNamed = changes.count <= ClusterAttempt.namedCount
        let keys = isNamed ? changes.map(\.key) : [Array("*".utf8)]
        let name = cause.map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: " ") : $0 }
        return Array(([name] + keys).joined(separator: "\t".utf8))
    }

    fileprivate var words: [[UInt8]] {
        var words: [[UInt8]] = []
        for (key, isPresent) in reads {
            words += [Array((isPresent ? "PRESENT" : "ABSENT").utf8), key]
        }
        for range in ranges { words += [Array("RANGE".utf8), range.start, range.end] }
        for range in deleted { words += [Array("CLEAR".utf8), range.start, range.end] }
        guard deleted.isEmpty else { return words }
        for change in changes {
            switch (change.value, change.expires) {
            case (nil, _): words += [Array("DELETE".utf8), change.key]
            case (let value?, nil): words += [Array("PUT".utf8), change.key, value]
            case (let value?, let time?):
                words += [Array("UNTIL".utf8), change.key, value, Array("\(time)".utf8)]
            }
        }
        return words
    }
}
