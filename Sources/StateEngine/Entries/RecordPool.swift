import Glibc

/// Memory of freed records, for the next ones: the last to be freed is the first to be used, while
/// it is in the caches.
///
/// The commit of a key's next version frees the one before, so each write takes and returns one
/// record. malloc keeps only few chunks of this size apart and then examines their neighbours: 9 %
/// of a SET with pipelines of 16 (perf).
///
/// A size class holds what the system's malloc rounds to the same chunk. Each record is as large as
/// its class allows, so that memory of any malloc can be reused; the system's malloc rounds to
/// exactly that.
struct RecordPool {
    /// The newest free memory of each class; its first word is the address of the next.
    private var heads = [UnsafeMutableRawPointer?](repeating: nil, count: RecordPool.classCount)
    private var freeByteCount = 0

    private static let classCount = 64
    /// Memory beyond this limit is returned to malloc.
    private static let byteLimit = 4 << 20

    private static func sizeClass(_ byteCount: Int) -> Int { (byteCount + 23) / 16 }

    /// How many bytes malloc must allocate for a record of `byteCount` bytes: enough for each
    /// record of the same class.
    static func roomByteCount(_ byteCount: Int) -> Int { sizeClass(byteCount) * 16 - 8 }

    /// Memory for `byteCount` bytes, uninitialized; returned with `free` or ``give(_:_:)``.
    mutating func take(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        let place = RecordPool.sizeClass(byteCount)
        guard place < RecordPool.classCount, let head = heads[place] else { return nil }
        heads[place] = head.load(as: UnsafeMutableRawPointer?.self)
        freeByteCount -= place * 16
        return head
    }

    /// Takes memory of `byteCount` bytes back.
    mutating func give(_ memory: UnsafeMutableRawPointer, _ byteCount: Int) {
        let place = RecordPool.sizeClass(byteCount)
        guard place < RecordPool.classCount, freeByteCount < RecordPool.byteLimit else {
            free(memory)
            return
        }
        memory.storeBytes(of: heads[place], as: UnsafeMutableRawPointer?.self)
        heads[place] = memory
        freeByteCount += place * 16
    }

    /// Returns everything to malloc.
    mutating func drain() {
        for place in heads.indices {
            while let head = heads[place] {
                heads[place] = head.load(as: UnsafeMutableRawPointer?.self)
                free(head)
            }
        }
        freeByteCount = 0
    }
}
