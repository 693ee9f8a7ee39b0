import StateEngine
import StateWire

/// Pipelines: several commands that have come at once.
extension Server {
    /// Brings what the next commands look for into the processor's cache.
    ///
    /// Each level of a look-up waits for memory; so the look-ups of several commands wait together. With
    /// 100,000 keys and pipelines of 16, the waiting was a third of the loop's time.
    ///
    /// - Returns: How many bytes these commands have.
    func lookAhead(_ input: Bytes, of connection: Connection, _ core: KeyspaceCore) -> Int {
        withUnsafeTemporaryAllocation(of: Bytes.self, capacity: 16) { keys in
            let next = connection.inbound.parser.lookAhead(input, keys)
            if next.count > 1 { core.lookAhead(UnsafeBufferPointer(rebasing: keys[..<next.count])) }
            return next.byteCount
        }
    }
}
