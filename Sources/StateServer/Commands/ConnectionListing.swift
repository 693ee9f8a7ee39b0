import CLinux
import StateEngine
import StateWire

/// CLIENT LIST and STATE.WATCHES: rows of each connection, in the order of their numbers.
///
/// A connection that ends while it is made may be missing, as may what begins after its place.
final class ConnectionListing: SlicedListing {
    private let registry: Registry
    private let byteLimit: Int
    private let visitLimit: Int
    private let advice: String
    private let write: (Connection, KeyspaceCore, inout ByteBuffer) -> Int
    private var numbers: [Int]
    private var rows = ByteBuffer(roomInFront: true)
    private(set) var count = 0
    /// What was visited: a row, or the looks at 32 connections.
    private(set) var visitedCount: Int

    /// - Parameters:
    ///   - registry: The connections.
    ///   - byteLimit: The most bytes of rows; more is refused.
    ///   - visitLimit: The most rows, and looks at 32 connections.
    ///   - advice: How to ask for less.
    ///   - write: Writes the rows of a connection, and returns how many they are.
    init(
        _ registry: Registry,
        byteLimit: Int,
        visitLimit: Int,
        advice: String,
        _ write: @escaping (Connection, KeyspaceCore, inout ByteBuffer) -> Int
    ) {
        (self.registry, self.byteLimit, self.visitLimit) = (registry, byteLimit, visitLimit)
        (self.advice, self.write) = (advice, write)
        numbers = registry.all.keys.sorted(by: >)
        visitedCount = numbers.count / 32
    }

    var byteCount: Int { rows.footprint + numbers.count * MemoryLayout<Int>.stride }

    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        var uncheckedCount = 0
        while let number = numbers.popLast() {
            uncheckedCount += 1
            if let connection = registry.all[number] {
                let count = write(connection, core, &rows)
                self.count += count
                visitedCount += count
                uncheckedCount += count
            }
            guard rows.count <= byteLimit else { throw replyTooBig(byteLimit, advice) }
            guard visitedCount <= visitLimit else { throw visitsTooMuch(visitLimit) }
            guard uncheckedCount >= 16 else { continue }
            uncheckedCount = 0
            if clinux_monotonic_nanoseconds() >= deadline { return false }
        }
        return true
    }

    func end(in core: KeyspaceCore) {}

    func writeRows(to output: inout ByteBuffer) { output.append(taking: &rows) }

    /// Writes the rows as one text.
    func writeText(to output: inout ByteBuffer) { output.writeBulk(rows.bytes) }
}
