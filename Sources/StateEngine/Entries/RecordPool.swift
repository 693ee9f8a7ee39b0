import Glibc

/// Memory of records that were freed, for the next ones: the last to go is the first to be used, while the caches hold it.
///
/// The commit of a key's next version frees the one before, so each write takes and gives one record. malloc keeps chunks of
/// this size apart only few at a time and then looks at their neighbours: 9 % of a SET under pipelines of 16 (perf).
///
/// A class holds what malloc of the system rounds to the same chunk. Each record is as large as its class allows, so that memory
/// of any malloc may be used again; the system's rounds to just that.
struct RecordPool {
    /// The newest free memory of each class; its first word is the address of the next.
    private var heads = [UnsafeMutableRawPointer?](repeating: nil, count: RecordPool.classCount)
    private var freeByteCount = 0

    private static let classCount = 64
    /// What is given back beyond this goes to malloc.
    private static let byteLimit = 4 << 20

    private static func sizeClass(_ byteCount: Int) -> Int { (byteCount + 23) / 16 }

    /// How many bytes malloc is asked for where `byteCount` are needed: enough for each record of the same class.
    static func roomByteCount(_ byteCount: Int) -> Int { sizeClass(byteCount) * 16 - 8 }

    /// Memory for `byteCount` bytes, uninitialized; `free` or ``give(_:_:)`` ends it.
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

    /// Gives everything to malloc.
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
