import StateSQLite

/// One page of a B-tree. https://www.sqlite.org/fileformat2.html#b_tree_pages
struct TreePage {
    /// The type in the first byte.
    enum Kind: UInt8 {
        case interior = 0x05
        case leaf = 0x0D
        /// Of a table without rowids: `meta`.
        case indexLeaf = 0x0A
        /// The same, above leaves; it has rows of its own.
        case indexInterior = 0x02
    }

    /// A row as it begins in a cell.
    struct Cell {
        /// The key of the B-tree; 0 in an index.
        var number: Int64
        /// Bytes of the record.
        var byteCount: Int
        /// The range of the part on this page.
        var local: Range<Int>
        /// The page with the next part; 0 if there is none.
        var overflow: Int
    }

    let bytes: [UInt8]
    /// The start of the page, after the header of the file on the first page.
    private let start: Int

    init(_ bytes: [UInt8], isFirst: Bool) {
        self.bytes = bytes
        start = isFirst ? 100 : 0
    }

    /// Nil for a page of another kind, or a damaged one.
    var kind: Kind? { Kind(rawValue: bytes[start]) }

    /// The number of cells according to the page.
    var cellCount: Int { bytes.number(at: start + 3, bytes: 2) }

    /// The number of cells of a leaf, corrected if the space that they take shows that one bit of
    /// it is damaged.
    ///
    /// All space that is not free is cells, so the right count is the one with which they take all
    /// of it, without duplicates. If the start of that space may be damaged instead, the page is
    /// believed, unless it counts invalid pointers.
    func likelyCellCount(inIndex isIndex: Bool = false) -> Int {
        guard let count = fillingCellCount(inIndex: isIndex),
            (count ^ cellCount).nonzeroBitCount == 1
        else { return cellCount }
        guard cellCount <= pointerCount(before: bytes.count) else { return count }
        guard let first = (0..<cellCount).lazy.map({ pointer($0) }).min(),
            first >= start + 8 + 2 * cellCount
        else { return count }
        let isTopDamaged =
            (first ^ top).nonzeroBitCount == 1
            && fillingCellCount(inIndex: isIndex, from: first) == cellCount
        return isTopDamaged ? cellCount : count
    }

    /// Whether the cells, read as those of a leaf, take exactly the space that is not free.
    ///
    /// An interior page that is the root was a leaf once, and old rows may remain on it. They do
    /// not belong to it.
    func isFilledAsLeaf(inIndex isIndex: Bool = false) -> Bool {
        fillingCellCount(inIndex: isIndex) == cellCount
    }

    /// The page as a leaf of an index, if one wrong bit in its first byte makes it look like an
    /// interior page.
    var indexLeaf: TreePage? {
        guard kind == .indexInterior else { return nil }
        var bytes = bytes
        bytes[start] = Kind.indexLeaf.rawValue
        let leaf = TreePage(bytes, isFirst: start > 0)
        return leaf.isFilledAsLeaf(inIndex: true) ? leaf : nil
    }

    /// The start of the cells.
    private var top: Int { bytes.number(at: start + 5, bytes: 2) }

    /// The number of cells of a leaf that takes exactly the space that is not free; nil if there is
    /// none.
    private func fillingCellCount(inIndex isIndex: Bool = false, from top: Int? = nil) -> Int? {
        let top = top ?? self.top
        guard let freeByteCount = freeBlockByteCount(from: top) else { return nil }
        let taken = bytes.count - top - Int(bytes[start + 7]) - freeByteCount
        var (count, sum, lowest) = (0, 0, bytes.count)
        var places: Set<Int> = []
        while sum < taken, count < pointerCount(before: lowest),
            let cell = cell(count, inIndex: isIndex)
        {
            // Behind the pointers are remains of earlier ones, to cells that were moved or removed.
            let place = pointer(count)
            guard place >= top, places.insert(place).inserted else { break }
            sum += max(4, cell.local.upperBound + (cell.overflow > 0 ? 4 : 0) - place)
            lowest = min(lowest, place)
            count += 1
        }
        return sum == taken ? count : nil
    }

    /// Bytes of the free blocks between cells, which begin at `top`; nil if a block cannot be one:
    /// then this list is damaged, not the number of cells.
    ///
    /// https://www.sqlite.org/fileformat2.html#b_tree_pages ("freeblock")
    private func freeBlockByteCount(from top: Int) -> Int? {
        var place = bytes.number(at: start + 1, bytes: 2)
        var byteCount = 0
        while place != 0 {
            guard place >= top, place + 4 <= bytes.count else { return nil }
            let next = bytes.number(at: place, bytes: 2)
            let size = bytes.number(at: place + 2, bytes: 2)
            guard size >= 4, place + size <= bytes.count else { return nil }
            // Blocks with less than four bytes between them would have been joined.
            guard next == 0 || next >= place + size + 4 else { return nil }
            byteCount += size
            place = next
        }
        return byteCount
    }

    /// The number of pointers that fit before the byte at `end`.
    func pointerCount(before end: Int) -> Int { max(0, (end - start - 8) / 2) }

    /// The start of the `index`-th cell of a leaf.
    func pointer(_ index: Int) -> Int { bytes.number(at: start + 8 + 2 * index, bytes: 2) }

    /// The pages below an interior page; nil if they cannot be read.
    var children: [Int]? {
        kind == .interior || kind == .indexInterior ? anyChildren : nil
    }

    /// The pages below this one if it is an interior page, whatever its first byte.
    private var anyChildren: [Int]? {
        guard cellCount <= pointerCount(before: bytes.count) else { return nil }
        var children: [Int] = []
        for index in 0..<cellCount {
            // The last page comes before the pointers.
            let place = pointer(index + 2)
            guard place >= start + 12, place + 5 <= bytes.count else { return nil }
            children.append(bytes.number(at: place, bytes: 4))
        }
        return children + [bytes.number(at: start + 8, bytes: 4)]
    }

    /// Whether this is an interior page, or was one before its first byte was damaged.
    ///
    /// The numbers of pages that such a page begins with, read as pointers of a leaf, may lead to
    /// old rows.
    func isLikelyInterior(in pageCount: Int) -> Bool {
        let leads = anyChildren?.allSatisfy((2...max(2, pageCount)).contains) ?? false
        return (leads || kind == .interior) && !isFilledAsLeaf()
    }

    /// The numbers of the rows below each of ``children``, if those below this page are `rows`.
    func rows(ofChildrenIn rows: ClosedRange<Int64>) -> [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        var first = rows.lowerBound
        for index in 0..<cellCount {
            // The highest number below the child comes after it.
            let last = Varint(bytes, at: pointer(index + 2) + 4)?.value ?? rows.upperBound
            // A damaged number gives no bound.
            ranges.append(first...max(first, last))
            if last >= first, last < rows.upperBound { first = last + 1 }
        }
        return ranges + [first...max(first, rows.upperBound)]
    }

    /// Whether the rows of a leaf have numbers in `range`; true for a leaf without rows.
    func hasRows(in range: ClosedRange<Int64>) -> Bool {
        cells.allSatisfy { $0.map { range.contains($0.number) } ?? true }
    }

    /// The cells of a leaf, as many as there is room for pointers; nil for one that cannot be read.
    var cells: [Cell?] { (0..<min(cellCount, pointerCount(before: bytes.count))).map { cell($0) } }

    /// The cell of the `index`-th pointer, read as one of a leaf; nil if there is none.
    func cell(_ index: Int, inIndex isIndex: Bool = false) -> Cell? {
        // In an interior page, the last child comes before the pointers, and a child before each
        // row.
        let isInterior = kind == .indexInterior
        var place = pointer(index + (isInterior ? 2 : 0)) + (isInterior ? 4 : 0)
        guard place >= start + 8, place < bytes.count,
            let size = Varint(bytes, at: place), size.value >= 0
        else { return nil }
        place += size.byteCount
        var number: Int64 = 0
        if !isIndex {
            guard let read = Varint(bytes, at: place) else { return nil }
            number = read.value
            place += read.byteCount
        }
        let byteCount = Int(size.value)
        let local = localByteCount(byteCount, inIndex: isIndex)
        let end = place + local
        let isWhole = local == byteCount
        guard end + (isWhole ? 0 : 4) <= bytes.count else { return nil }
        return Cell(
            number: number,
            byteCount: byteCount,
            local: place..<end,
            overflow: isWhole ? 0 : bytes.number(at: end, bytes: 4)
        )
    }

    /// The number of bytes in the cell of a record of `byteCount` bytes.
    private func localByteCount(_ byteCount: Int, inIndex isIndex: Bool) -> Int {
        let usable = bytes.count
        let most = isIndex ? (usable - 12) * 64 / 255 - 23 : usable - 35
        if byteCount <= most { return byteCount }
        let least = (usable - 12) * 32 / 255 - 23
        let fitting = least + (byteCount - least) % (usable - 4)
        return fitting <= most ? fitting : least
    }
}

/// A number of one to nine bytes. https://www.sqlite.org/fileformat2.html#varint
struct Varint {
    var value: Int64
    var byteCount: Int

    /// Reads the number at `offset`; nil if the bytes end before it does.
    init?(_ bytes: some RandomAccessCollection<UInt8>, at offset: Int) {
        var bits: UInt64 = 0
        var index = bytes.index(bytes.startIndex, offsetBy: min(offset, bytes.count))
        for count in 1...9 {
            guard index < bytes.endIndex else { return nil }
            let byte = bytes[index]
            index = bytes.index(after: index)
            if count == 9 {
                bits = bits << 8 | UInt64(byte)
            } else {
                bits = bits << 7 | UInt64(byte & 0x7F)
            }
            if byte & 0x80 == 0 || count == 9 {
                value = Int64(bitPattern: bits)
                byteCount = count
                return
            }
        }
        return nil
    }
}
