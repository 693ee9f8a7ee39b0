import StateEngine
import StateWire

/// The commands between MULTI and EXEC, as they came.
final class QueuedTransaction {
    private(set) var bytes = ByteBuffer()
    var byteCount: Int { bytes.count }
    /// About how much memory it takes.
    var footprint: Int { bytes.footprint }
    private(set) var count = 0
    private(set) var hasWrites = false
    /// What its commands cost, but for what they list.
    private(set) var steps = 0
    /// The keys of its commands that live in files.
    var files = FileKeys()
    /// A command was refused while queuing: EXEC will refuse all.
    var isRefused = false

    /// Adds a command whose frame is `raw`.
    func append(_ raw: Bytes, isWrite: Bool, steps: Int) {
        bytes.append(raw)
        count += 1
        self.steps += steps
        if isWrite { hasWrites = true }
    }
}
