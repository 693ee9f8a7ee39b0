package import StateModel
import StatePlatform

/// Bytes that are appended at the end and removed from the front.
@usableFromInline
package struct ByteBuffer: ~Copyable {
    @usableFromInline var base: UnsafeMutableRawPointer?
    /// How many bytes fit without another allocation.
    @usableFromInline package private(set) var capacity = 0
    @usableFromInline var start = 0
    @usableFromInline var end = 0

    package init() {}

    /// Makes a buffer, with room in front for the head of a reply; see ``append(taking:)``.
    package init(roomInFront: Bool) {
        guard roomInFront else { return }
        _ = reserve(ByteBuffer.frontByteCount)
        (start, end) = (ByteBuffer.frontByteCount, ByteBuffer.frontByteCount)
    }

    private static let frontByteCount = 256

    deinit { free(base) }

    /// The number of bytes.
    @inlinable package var count: Int { end - start }

    @inlinable package var isEmpty: Bool { start == end }

    /// Its approximate memory: of a large block, only the part that was written to.
    @inlinable package var footprint: Int { max(end, min(capacity, 64 << 10)) }

    /// The bytes; valid until the next change.
    @inlinable package var bytes: UnsafeRawBufferPointer {
        guard let base else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: base + start, count: end - start)
    }

    // MARK: At the end

    package mutating func append(_ bytes: Bytes) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        memcpy(reserve(bytes.count), source, bytes.count)
        end += bytes.count
    }

    package mutating func append(_ text: StaticString) {
        append(Bytes(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func append(_ byte: UInt8) {
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        end += 1
    }

    /// Appends all of `other`, and empties it.
    ///
    /// Does not copy them if this buffer is empty, or fits into the room in front of them.
    package mutating func append(taking other: inout ByteBuffer) {
        guard count <= other.start || isEmpty else {
            append(other.bytes)
            other.removeAll()
            return
        }
        if let base, let otherBase = other.base, !isEmpty {
            other.start -= count
            memcpy(otherBase + other.start, base + start, count)
        }
        removeAll()
        let (base, capacity, start, end) = (base, capacity, start, end)
        (self.base, self.capacity) = (other.base, other.capacity)
        (self.start, self.end) = (other.start, other.end)
        (other.base, other.capacity, other.start, other.end) = (base, capacity, start, end)
    }

    /// Appends `prefix`, a number in decimal digits, and CR LF.
    package mutating func appendLine(_ prefix: UInt8, _ number: Int) {
        let target = reserve(ByteBuffer.lineByteCount)
        end += ByteBuffer.writeLine(prefix, number, to: target)
    }

    /// Appends a line of `prefix` and the number of `bytes`, then the bytes and CR LF.
    package mutating func appendBlock(_ prefix: UInt8, _ bytes: Bytes) {
        let target = reserve(ByteBuffer.lineByteCount + bytes.count + 2)
        let length = ByteBuffer.writeLine(prefix, bytes.count, to: target)
        if let source = bytes.baseAddress { memcpy(target + length, source, bytes.count) }
        let lineEnd = UInt16(littleEndian: 0x0A0D)
        target.storeBytes(of: lineEnd, toByteOffset: length + bytes.count, as: UInt16.self)
        end += length + bytes.count + 2
    }

    /// What ``writeLine(_:_:to:)`` writes at most: a prefix, a sign, 19 digits, CR and LF.
    private static let lineByteCount = 24

    /// - Returns: How many bytes it has written.
    @inline(__always)
    private static func writeLine(
        _ prefix: UInt8,
        _ number: Int,
        to target: UnsafeMutableRawPointer
    ) -> Int {
        let line = target.assumingMemoryBound(to: UInt8.self)
        line[0] = prefix
        if number < 0 { line[1] = UInt8(ascii: "-") }
        var rest = number.magnitude
        var length = number < 0 ? 2 : 1
        repeat {
            length += 1
            rest /= 10
        } while rest > 0
        rest = number.magnitude
        var index = length
        repeat {
            index -= 1
            line[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        line[length] = UInt8(ascii: "\r")
        line[length + 1] = UInt8(ascii: "\n")
        return length + 2
    }

    /// Room for `byteCount` more bytes at the end; ``extend(by:)`` says how many of them were
    /// filled.
    ///
    /// - Complexity: O(1) amortized.
    @inlinable
    package mutating func reserve(_ byteCount: Int) -> UnsafeMutableRawPointer {
        if end + byteCount > capacity || base == nil { makeRoom(byteCount) }
        guard let base else { fatalError("no memory for \(byteCount) bytes") }
        return base + end
    }

    /// How many bytes ``reserve(_:)`` of 1 gives room for.
    @inlinable package var freeByteCount: Int { capacity - end }

    @inlinable
    package mutating func extend(by byteCount: Int) {
        precondition(end + byteCount <= capacity, "more bytes than there is room for")
        end += byteCount
    }

    @usableFromInline
    @inline(never)
    mutating func makeRoom(_ byteCount: Int) {
        if start > 0, count + byteCount <= capacity, start >= capacity / 2 {
            if let base { memmove(base, base + start, count) }
        } else {
            let needed = max(256, max(capacity * 2, count + byteCount))
            // The kernel moves the pages of a large block, which need not be copied.
            if let base, start > 0 { memmove(base, base + start, count) }
            guard let larger = realloc(base, needed) else {
                fatalError("no memory for \(needed) bytes")
            }
            base = larger
            capacity = needed
        }
        end -= start
        start = 0
    }

    // MARK: At the front

    /// Removes bytes from the front.
    @inlinable
    package mutating func removeFirst(_ byteCount: Int) {
        precondition(byteCount <= count, "more bytes are taken than there are")
        start += byteCount
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Replaces the first byte.
    package mutating func replaceFirst(with byte: UInt8) {
        precondition(count > 0, "the first byte of an empty buffer")
        base?.storeBytes(of: byte, toByteOffset: start, as: UInt8.self)
    }

    /// Replaces the first `byteCount` bytes by `bytes`, which must not be longer.
    package mutating func replaceFirst(_ byteCount: Int, with bytes: Bytes) {
        precondition(
            bytes.count <= byteCount && byteCount <= count,
            "more bytes than there is room for"
        )
        start += byteCount - bytes.count
        if let base, let source = bytes.baseAddress { memcpy(base + start, source, bytes.count) }
    }

    @inlinable
    package mutating func removeAll() {
        start = 0
        end = 0
    }

    /// Removes bytes from the end, so that `byteCount` bytes are left.
    @inlinable
    package mutating func truncate(to byteCount: Int) {
        precondition(byteCount <= count, "a buffer is cut behind its end")
        end = start + byteCount
    }

    /// Frees memory if the buffer is empty and its capacity is above `byteCount`.
    package mutating func shrink(to byteCount: Int) {
        guard isEmpty, capacity > byteCount else { return }
        free(base)
        base = nil
        capacity = 0
        removeAll()
    }
}
