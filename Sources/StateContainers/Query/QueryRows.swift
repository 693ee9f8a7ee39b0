import StateEngine

/// The rows of a query, in its order.
///
/// A value: it stays as it is when the query goes on. Rows are kept in blocks, and two values of
/// one query share the blocks in which nothing has changed; so a change costs the same in a query
/// of any length.
public struct QueryRows<Value: Sendable>: Sendable {
    /// None is empty.
    private var blocks: [[QueryRow<Value>]] = []
    /// The position of the first row of each block.
    private var starts: [Int] = []
    /// How many rows the blocks have.
    private var keptCount = 0
    /// How many rows come before those in the blocks, and are not kept.
    private var start = 0
    /// How many rows there are that the blocks do not have.
    private var otherCount = 0
    /// How many of them come before the first row here.
    public private(set) var offset = 0
    /// How many rows are here at most.
    public private(set) var limit = Int.max

    /// How many rows there are without ``offset`` and ``limit``.
    public var totalCount: Int { keptCount + otherCount }

    /// How many rows there are.
    public var count: Int { Swift.min(limit, Swift.max(0, keptCount - (offset - start))) }

    /// Whether one row comes before another; keys decide last, so no two rows are equal.
    typealias Order = (QueryRow<Value>, QueryRow<Value>) -> Bool

    /// How many rows a block has at most; after that it is split.
    private static var blockLimit: Int { 256 }

    /// Makes no rows.
    init() {}

    /// Makes rows that are in order already.
    init(sorted rows: [QueryRow<Value>]) {
        // Not full, so that the next changes do not split every block.
        let length = QueryRows.blockLimit * 3 / 4
        for start in stride(from: 0, to: rows.count, by: length) {
            starts.append(start)
            blocks.append(Array(rows[start...].prefix(length)))
        }
        keptCount = rows.count
    }

    /// Makes a page, of which no other rows are kept.
    ///
    /// - Parameters:
    ///   - rows: Its rows, in order; fewer than its entries if some cannot be read.
    ///   - offset: How many entries come before it.
    ///   - limit: How many rows it may have.
    ///   - totalCount: How many entries there are.
    init(page rows: [QueryRow<Value>], offset: Int, limit: Int, of totalCount: Int) {
        self.init(sorted: rows)
        (self.offset, start, self.limit) = (offset, offset, limit)
        otherCount = totalCount - rows.count
    }

    /// Some of these rows: those after the first `offset`, at most `limit`.
    ///
    /// - Complexity: O(1); the rows are shared.
    func window(offset: Int, limit: Int) -> QueryRows {
        var rows = self
        rows.offset = self.offset + offset
        rows.limit = Swift.min(limit, Swift.max(0, count - offset))
        return rows
    }

    /// How many of the first rows belong together; those behind them do not.
    ///
    /// - Complexity: O(log² *n*).
    func prefixCount(where belongs: (QueryRow<Value>) -> Bool) -> Int {
        var (known, end) = (0, count)
        while known < end {
            let middle = known + (end - known) / 2
            if belongs(self[middle]) { known = middle + 1 } else { end = middle }
        }
        return known
    }

    /// Whether these are the same rows at the same revisions, of equally many.
    func isSame(as other: QueryRows) -> Bool {
        totalCount == other.totalCount && count == other.count
            && zip(self, other).allSatisfy { $0.key == $1.key && $0.revision == $1.revision }
    }

    // MARK: Changing

    /// Replaces a row, inserts it if there is no old one, or removes it if there is no new one.
    ///
    /// - Complexity: O(log *n*) comparisons and O(√*n*) in the rows, with a small factor: the copy
    ///   of a block and of the list of blocks.
    mutating func replace(
        _ old: QueryRow<Value>?,
        with new: QueryRow<Value>?,
        in order: Order
    ) {
        if let old { remove(old, order) }
        if let new { insert(new, order) }
    }

    private mutating func insert(_ row: QueryRow<Value>, _ order: Order) {
        guard !blocks.isEmpty else {
            self = QueryRows(sorted: [row])
            return
        }
        let (found, offset) = place(of: row, order)
        // Behind all others: at the end of the last block.
        let block = Swift.min(found, blocks.count - 1)
        blocks[block].insert(row, at: found == block ? offset : blocks[block].count)
        shift(after: block, by: 1)
        if blocks[block].count > QueryRows.blockLimit { split(block) }
    }

    private mutating func remove(_ row: QueryRow<Value>, _ order: Order) {
        guard let (block, offset) = find(row, order) else { return }
        blocks[block].remove(at: offset)
        shift(after: block, by: -1)
        if blocks[block].isEmpty {
            blocks.remove(at: block)
            starts.remove(at: block)
        }
    }

    private mutating func split(_ block: Int) {
        let half = blocks[block].count / 2
        let rest = Array(blocks[block][half...])
        blocks[block].removeSubrange(half...)
        blocks.insert(rest, at: block + 1)
        starts.insert(starts[block] + half, at: block + 1)
    }

    private mutating func shift(after block: Int, by difference: Int) {
        keptCount += difference
        for next in starts.indices.dropFirst(block + 1) { starts[next] += difference }
    }

    // MARK: Finding

    /// The row of a key; the rows must be in the order of their keys.
    ///
    /// - Complexity: O(log *n*).
    func row(for key: Key) -> QueryRow<Value>? {
        let block = blocks.partitioningIndex { $0[$0.count - 1].key >= key }
        guard block < blocks.count else { return nil }
        let offset = blocks[block].partitioningIndex { $0.key >= key }
        return blocks[block][offset].key == key ? blocks[block][offset] : nil
    }

    /// Where the first row is that does not come before `row`; behind the last block if all do.
    private func place(of row: QueryRow<Value>, _ order: Order) -> (block: Int, offset: Int) {
        let block = blocks.partitioningIndex { !order($0[$0.count - 1], row) }
        guard block < blocks.count else { return (block, 0) }
        return (block, blocks[block].partitioningIndex { !order($0, row) })
    }

    /// Where a row with the same key is.
    ///
    /// If fields do not order strictly, such as numbers that are not a number, it may be anywhere.
    private func find(_ row: QueryRow<Value>, _ order: Order) -> (block: Int, offset: Int)? {
        let (block, offset) = place(of: row, order)
        if block < blocks.count, blocks[block][offset].key == row.key { return (block, offset) }
        for (block, rows) in blocks.enumerated() {
            if let offset = rows.firstIndex(where: { $0.key == row.key }) { return (block, offset) }
        }
        return nil
    }
}

extension QueryRows: RandomAccessCollection {
    /// 0.
    public var startIndex: Int { 0 }

    /// How many rows there are.
    public var endIndex: Int { count }

    /// The row at a position.
    ///
    /// - Complexity: O(log *n*).
    public subscript(position: Int) -> QueryRow<Value> {
        guard position >= 0 && position < count else { fatalError("row \(position) of \(count)") }
        let place = offset - start + position
        let block = starts.partitioningIndex { $0 > place } - 1
        return blocks[block][place - starts[block]]
    }

    /// Goes through the rows in order; O(1) for each.
    public func makeIterator() -> Iterator {
        let first = offset - start
        let block = starts.partitioningIndex { $0 > first } - 1
        return Iterator(
            blocks: blocks,
            block: Swift.max(0, block),
            place: block < 0 ? 0 : first - starts[block],
            rest: count
        )
    }

    /// A place in the rows.
    public struct Iterator: IteratorProtocol {
        let blocks: [[QueryRow<Value>]]
        var block: Int
        var place: Int
        var rest: Int

        /// The next row; nil at the end.
        public mutating func next() -> QueryRow<Value>? {
            guard rest > 0 else { return nil }
            rest -= 1
            if place == blocks[block].count { (block, place) = (block + 1, 0) }
            defer { place += 1 }
            return blocks[block][place]
        }
    }
}

extension QueryRows: Equatable where Value: Equatable {
    /// Whether both have equal rows in the same order.
    public static func == (left: QueryRows, right: QueryRows) -> Bool {
        left.count == right.count && left.elementsEqual(right)
    }
}

extension QueryRows: CustomStringConvertible {
    /// The rows as an array.
    public var description: String { "\(Array(self))" }
}
