import Glibc

/// A byte queue in one block of memory, which grows and is kept.
struct ByteQueue: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private var start = 0
    private var end = 0

    init(capacity: Int) {
        self.capacity = capacity
        base = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    var isEmpty: Bool { start == end }

    /// The queued bytes, valid until the next change.
    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + start, count: end - start)
    }

    /// Room for at least `count` bytes at the end, to write to and then ``commit(_:)``.
    mutating func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
        if capacity - end < count { makeRoom(count) }
        return UnsafeMutableRawBufferPointer(start: base + end, count: capacity - end)
    }

    mutating func commit(_ count: Int) { end += count }

    mutating func consume(_ count: Int) {
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        reserve(bytes.count).copyMemory(from: bytes)
        end += bytes.count
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    private mutating func makeRoom(_ count: Int) {
        let used = end - start
        if used + count <= capacity {
            memmove(base, base + start, used)
        } else {
            capacity = max(capacity * 2, used + count)
            let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
            larger.copyMemory(from: base + start, byteCount: used)
            base.deallocate()
            base = larger
        }
        start = 0
        end = used
    }
}
