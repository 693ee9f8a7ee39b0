public import StatePlatform

/// Bytes that somebody else owns, borrowed for a call; they must not be kept.
public typealias Bytes = UnsafeRawBufferPointer

extension UnsafeRawBufferPointer {
    /// Whether both hold the same bytes.
    @inlinable
    package func isEqual(to other: Bytes) -> Bool {
        guard count == other.count else { return false }
        guard count > 0, let mine = baseAddress, let theirs = other.baseAddress else { return true }
        return memcmp(mine, theirs, count) == 0
    }

    /// Whether these bytes come before `other` in byte order.
    @inlinable
    package func precedes(_ other: Bytes) -> Bool { order(to: other) < 0 }

    /// Below 0, 0 or above 0, if these bytes come before, equal or come after `other` in byte
    /// order.
    @inlinable
    package func order(to other: Bytes) -> Int {
        let shared = Swift.min(count, other.count)
        if shared > 0, let mine = baseAddress, let theirs = other.baseAddress {
            let difference = memcmp(mine, theirs, shared)
            if difference != 0 { return Int(difference) }
        }
        return count - other.count
    }

    /// Whether these bytes begin with `prefix`.
    @inlinable
    package func hasPrefix(_ prefix: Bytes) -> Bool {
        count >= prefix.count && Bytes(rebasing: self[0..<prefix.count]).isEqual(to: prefix)
    }

    /// The bytes from `start` to before `end`.
    @inlinable
    package func slice(_ start: Int, _ end: Int) -> Bytes { Bytes(rebasing: self[start..<end]) }

    /// The bytes decoded as UTF-8, with U+FFFD for invalid bytes.
    package var text: String { String(decoding: self, as: UTF8.self) }
}
