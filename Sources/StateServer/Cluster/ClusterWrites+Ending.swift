import StateEngine
import StateWire

/// Keys that have ended by themselves: the cluster deletes them.
extension ClusterWrites {
    func addEnded(to forming: inout FormingBatch, _ core: KeyspaceCore) {
        while let key = ended.last {
            if let attempt = core.attemptToEnd(key), !forming.addEnd(attempt) { return }
            ended.removeLast()
        }
    }

    /// Takes keys that have ended by themselves: the machine that has set one deletes it at once,
    /// others later, if it is still there.
    func take(_ ended: [ClusterUse.Ended]) {
        guard !ended.isEmpty, mirror.refusal == nil else { return }
        for key in ended where key.age >= delay(of: key.cause) { self.ended.append(key.key) }
        // The others come again in a second.
        self.ended = Array(self.ended.suffix(ClusterWrites.endedCount))
    }

    /// So many keys that have ended wait at most.
    private static let endedCount = 4_096
    /// How long after its end a key of another machine is deleted, in milliseconds: so far its clock
    /// may be behind.
    private static let foreignDelay: Int64 = 10_000

    /// How long after its end a key is deleted from here, in milliseconds.
    private func delay(of cause: Cause) -> Int64 {
        // A client of this machine has a process number, and no node.
        guard cause.pid == 0 || cause.command.contains("@") else { return 0 }
        return ClusterWrites.foreignDelay
            + 1_000 * Int64(mirror.options.node.utf8.reduce(0) { $0 + Int($1) } % 3)
    }
}
