/// Which rows the rules have been asked about, in blocks of 1,024 numbers.
///
/// A row that supersedes another is *decided* once a rule does not keep that other row. Until then
/// it is *open*, and its block is looked at again: when an age has passed, or, if the number of
/// versions counts, once four times as many rows have come after the block as at the last look. So
/// a block is read about six times while a million rows are written.
struct RuleBlocks {
    private struct Block {
        /// A bit for each decided row; empty if there is none.
        var decided: [UInt64] = []
        /// It is due once there is a row with this number.
        var dueNumber = Int64.max
        /// It is due at this age of the history, in milliseconds.
        var dueTime = Int64.max
        /// Whether an open row waits for later versions.
        var isCounting = false
    }

    /// The numbers of one block.
    static let rowCount: Int64 = 1_024
    /// The first distance at which a block is looked at again.
    private static let leastDistance: Int64 = 4_096

    private var first: Int64 = 0
    private var blocks: [Block] = []
    /// The least number and time at which a block is due.
    private(set) var dueNumber = Int64.max
    private(set) var dueTime = Int64.max

    private func index(of number: Int64) -> Int { Int(number / RuleBlocks.rowCount - first) }

    private func numbers(of index: Int) -> ClosedRange<Int64> {
        let start = (first + Int64(index)) * RuleBlocks.rowCount
        return start...start + RuleBlocks.rowCount - 1
    }

    /// Makes the block of a number, which is not below any before.
    mutating func add(_ number: Int64) {
        if blocks.isEmpty { first = number / RuleBlocks.rowCount }
        while index(of: number) >= blocks.count { blocks.append(Block()) }
    }

    /// Whether a row is decided.
    func isDecided(_ number: Int64) -> Bool {
        guard number >= first * RuleBlocks.rowCount else { return false }
        let index = index(of: number)
        guard index < blocks.count, !blocks[index].decided.isEmpty else { return false }
        let bit = number % RuleBlocks.rowCount
        return blocks[index].decided[Int(bit / 64)] & 1 << UInt64(bit % 64) != 0
    }

    /// Records that a row is decided; one before all blocks is ignored.
    mutating func decide(_ number: Int64) {
        guard number >= first * RuleBlocks.rowCount, index(of: number) < blocks.count else {
            return
        }
        let (index, bit) = (index(of: number), number % RuleBlocks.rowCount)
        if blocks[index].decided.isEmpty {
            blocks[index].decided = Array(repeating: 0, count: Int(RuleBlocks.rowCount / 64))
        }
        blocks[index].decided[Int(bit / 64)] |= 1 << UInt64(bit % 64)
    }

    /// Records that a row is open: until a time, and if `isCounting` until later versions come.
    mutating func keep(_ number: Int64, until time: Int64, isCounting: Bool) {
        let index = index(of: number)
        blocks[index].dueTime = min(blocks[index].dueTime, time)
        blocks[index].isCounting = blocks[index].isCounting || isCounting
    }

    /// The numbers of a block that is due; its open rows are to be recorded again.
    ///
    /// - Complexity: O(*n*) in the blocks, if any is due.
    mutating func takeDue(newest: Int64, time: Int64) -> ClosedRange<Int64>? {
        guard dueNumber <= newest || dueTime <= time else { return nil }
        let found = blocks.firstIndex { $0.dueNumber <= newest || $0.dueTime <= time }
        guard let found else {
            findNext()
            return nil
        }
        blocks[found].dueNumber = .max
        blocks[found].dueTime = .max
        blocks[found].isCounting = false
        return numbers(of: found)
    }

    /// The rows of a range of numbers were looked at; the newest row has the number `newest`.
    mutating func didLook(at range: ClosedRange<Int64>, newest: Int64) {
        guard !blocks.isEmpty else { return }
        let last = min(index(of: range.upperBound), blocks.count - 1)
        let start = max(0, index(of: range.lowerBound))
        // Where no rows are left, there are no blocks.
        guard start <= last else { return }
        for index in start...last {
            guard blocks[index].isCounting else { continue }
            let end = numbers(of: index).upperBound
            let distance = max(RuleBlocks.leastDistance, 4 * max(0, newest - end))
            blocks[index].dueNumber = end + distance
        }
        findNext()
    }

    /// All blocks are due: the rules are others, or somebody asks.
    mutating func makeAllDue() {
        for index in blocks.indices { blocks[index].dueNumber = 0 }
        findNext()
    }

    /// Drops the blocks before a number.
    mutating func drop(before number: Int64) {
        let count = min(max(0, index(of: number)), blocks.count)
        guard count > 0 else { return }
        blocks.removeFirst(count)
        first += Int64(count)
        findNext()
    }

    private mutating func findNext() {
        dueNumber = blocks.reduce(.max) { min($0, $1.dueNumber) }
        dueTime = blocks.reduce(.max) { min($0, $1.dueTime) }
    }
}
