import StateEngine
import StateWire

/// Replies of one connection that wait, each behind a revision, and those that stand behind them.
struct HeldReplies: ~Copyable {
    private struct Hold {
        /// Goes when this is durable; 0: waits only for its place in the order.
        var revision: Int64
        /// The commit that it reports without waiting for it; 0: none.
        var reported: Int64 = 0
        var byteCount: Int
        /// Nothing undoes the commit that it waits for.
        var isFinal = false
    }

    private var bytes = ByteBuffer()
    private var holds: [Hold] = []
    private var first = 0

    var isEmpty: Bool { first == holds.count }
    var byteCount: Int { bytes.count }
    /// About how much memory they take.
    var footprint: Int { bytes.footprint + holds.capacity * MemoryLayout<Hold>.stride }

    /// - Parameters:
    ///   - reply: Its bytes.
    ///   - revision: What it waits for; 0 for its place in the order alone.
    ///   - reported: The commit that it reports without waiting for it; 0 for none.
    ///   - isFinal: Whether nothing undoes what it waits for.
    mutating func append(
        _ reply: Bytes,
        behind revision: Int64,
        reporting reported: Int64,
        isFinal: Bool = false
    ) {
        bytes.append(reply)
        holds.append(
            Hold(revision: revision, reported: reported, byteCount: reply.count, isFinal: isFinal)
        )
    }

    /// Moves the replies that nothing holds any more to `output`, in order.
    ///
    /// - Parameters:
    ///   - revision: Everything up to it is durable.
    ///   - output: Takes the replies.
    ///   - early: Takes the commits that they report and that are not durable.
    mutating func release(
        durable revision: Int64,
        into output: inout ByteBuffer,
        early: inout EarlyReplies
    ) {
        var byteCount = 0
        while first < holds.count, holds[first].revision <= revision {
            if holds[first].reported > revision { early.append(holds[first].reported) }
            byteCount += holds[first].byteCount
            first += 1
        }
        guard byteCount > 0 else { return }
        output.append(bytes.bytes.slice(0, byteCount))
        bytes.removeFirst(byteCount)
        if first == holds.count {
            holds.removeAll(keepingCapacity: holds.capacity <= 4_096)
            first = 0
            bytes.shrink(to: 64 << 10)
        } else if first >= 1_024, first * 2 > holds.count {
            holds.removeFirst(first)
            first = 0
        }
    }

    /// Puts `error` in the place of each reply that waits for `revision` or a later one, or reports one.
    mutating func fail(from revision: Int64, _ error: StateError) {
        var answer = ByteBuffer()
        answer.writeError(error)
        var kept = ByteBuffer()
        var start = 0
        for index in first..<holds.count {
            let end = start + holds[index].byteCount
            if !holds[index].isFinal, max(holds[index].revision, holds[index].reported) >= revision
            {
                kept.append(answer.bytes)
                holds[index] = Hold(revision: 0, byteCount: answer.count)
            } else {
                kept.append(bytes.bytes.slice(start, end))
            }
            start = end
        }
        bytes = kept
    }
}
