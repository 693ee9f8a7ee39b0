import StateEngine
import StateSQLite

/// The intact rows of a history, wherever in the file they are, in order; and the damaged ones.
///
/// A row counts if it matches its checksum, whatever the state of the pages that lead to it. After
/// compaction, however, removed rows may remain on pages that are not part of the table, and behind
/// the last row of those that are. So of rows that nothing leads to, only those above the compacted
/// revision count, because they are never removed.
struct FoundHistory {
    /// The location of an intact row.
    struct Row {
        var place: HistoryPlace
        /// Its number on the page, which no checksum covers.
        var number: Int64
        fileprivate var page: UInt32
        fileprivate var cell: Int32
        /// Bytes of the row on that page.
        fileprivate var localByteCount: Int
    }

    /// A row that does not match its checksum, or cannot be read as one.
    struct DamagedRow {
        var page: Int
        /// Its own fields, which may be wrong; nil if they cannot be read.
        var number: Int64?
        var revision: Int64?
        var key: [UInt8]?
    }

    let map: StoreMap
    private(set) var rows: [Row] = []
    private(set) var damagedRows: [DamagedRow] = []
    /// Pages that nothing intact uses, in order.
    private(set) var strayPages: RangeSet<Int>

    let pages: StorePages
    /// Pages that continue intact rows.
    private var overflowPages: Set<Int> = []

    /// Reads the pages twice; the second time those on which no row was found.
    init(_ pages: StorePages) {
        self.pages = pages
        map = StoreMap(pages)
        strayPages = pages.unwritten
        var rest: [Int] = []
        for number in pages.written.ranges.joined() where number > 1 {
            guard let page = pages.tree(number) else {
                strayPages.insert(number)
                continue
            }
            if map.isPart(page, number) { take(page, number) } else { rest.append(number) }
        }
        for number in rest where !overflowPages.contains(number) {
            if !takeStray(number) { strayPages.insert(number) }
        }
        for number in pages.earlierVersions { _ = takeStray(number) }
        if pages.mayLackPages { removeFoundElsewhere() }
        for number in overflowPages.union(map.free) { strayPages.remove(number) }
        rows.sort { $0.place < $1.place }
        removeDuplicates()
        // Intact rows are read again, whatever the search for them took.
        pages.beginPass()
    }

    /// Whether there is an intact row at this place.
    func contains(_ place: HistoryPlace) -> Bool {
        let index = rows.partitioningIndex { $0.place >= place }
        return index < rows.count && rows[index].place == place
    }

    /// The bytes of a row.
    func record(of row: Row) -> [UInt8]? {
        guard let page = pages.tree(Int(row.page)) else { return nil }
        return page.cell(Int(row.cell)).flatMap { pages.record($0, in: page.bytes) }
    }

    /// The rows of a leaf of the table.
    private mutating func take(_ page: TreePage, _ number: Int) {
        let compacted = map.number(.compacted) ?? .max
        _ = takeRows(page, number, upTo: page.likelyCellCount(), above: compacted, isPart: true)
    }

    /// Takes the rows of a page that is not a leaf of the table, or does not look like one; if the
    /// tree leads to it, it is one.
    ///
    /// - Returns: Whether anything uses the page.
    private mutating func takeStray(_ number: Int) -> Bool {
        guard let page = pages.tree(number) else { return true }
        let isLed =
            map.damagedLeaves.contains(number) && !map.free.contains(number)
            && !page.isLikelyInterior(in: pages.pageCount)
        let count = isLed ? page.likelyCellCount() : 0
        let hasRows = takeRows(page, number, upTo: count, above: leastStrayRevision, isPart: false)
        return hasRows || map.free.contains(number) || map.interiors.contains(number)
            || map.meta.pages.contains(number)
    }

    /// Takes the rows of a page: those of its first `count` cells, and behind them those above a
    /// revision.
    ///
    /// There may be more behind the last pointer: if the number of cells is damaged, and rows that
    /// compaction removed.
    ///
    /// - Returns: Whether any row on it is intact.
    private mutating func takeRows(
        _ page: TreePage,
        _ number: Int,
        upTo count: Int,
        above revision: Int64,
        isPart: Bool
    ) -> Bool {
        var end = page.bytes.count
        var (room, damagedRoom) = (PageRoom(page, times: 2), PageRoom(page, times: 8))
        var hasRows = false
        var next = 0
        while next < page.pointerCount(before: end) {
            defer { next += 1 }
            let place = page.pointer(next)
            guard room.isNew(place) else {
                // One of the two pointers is damaged, and no other leads to its row.
                if isPart, next < count, damagedRoom.holds(0) {
                    damagedRows.append(DamagedRow(page: number))
                }
                continue
            }
            if let row = wholeRow(page, number, next) {
                guard room.holds(row.localByteCount) else { break }
                end = min(end, place)
                hasRows = true
                if next < count || row.place.revision > revision { rows.append(row) }
            } else if isPart, next < count, place != 0 {
                guard damagedRoom.holds(page.cell(next)?.local.count ?? 0) else { continue }
                damagedRows.append(damagedRow(page, number, next))
            }
        }
        return hasRows
    }

    /// A row above this revision that nothing leads to was not removed.
    private var leastStrayRevision: Int64 {
        map.number(.compacted) ?? (map.free.isEmpty ? 0 : .max)
    }

    private mutating func wholeRow(_ page: TreePage, _ number: Int, _ index: Int) -> Row? {
        guard let cell = page.cell(index), let record = pages.record(cell, in: page.bytes) else {
            return nil
        }
        let place = record.withUnsafeBytes { StoredRecord.wholeRow($0)?.place }
        guard let place else { return nil }
        overflowPages.formUnion(pages.overflowPages(of: cell))
        return Row(
            place: place,
            number: cell.number,
            page: UInt32(number),
            cell: Int32(index),
            localByteCount: cell.local.count
        )
    }

    private func damagedRow(_ page: TreePage, _ number: Int, _ index: Int) -> DamagedRow {
        var row = DamagedRow(page: number)
        guard let cell = page.cell(index) else { return row }
        row.number = cell.number
        pages.record(cell, in: page.bytes)?.withUnsafeBytes { bytes in
            guard let (change, _) = StoredRecord.historyRow(bytes) else { return }
            row.revision = change.revision
            row.key = Array(change.key)
        }
        return row
    }

    /// A row that is damaged in the newest version of its page may be intact in an earlier one.
    ///
    /// Rows without a number cannot be identified: their frames are reported.
    private mutating func removeFoundElsewhere() {
        let numbers = Set(rows.map(\.number))
        damagedRows.removeAll { row in row.number.map(numbers.contains) ?? true }
    }

    private mutating func removeDuplicates() {
        var last: HistoryPlace?
        rows.removeAll { row in
            defer { last = row.place }
            return row.place == last
        }
    }
}

extension RangeSet<Int> {
    mutating func insert(_ number: Int) { insert(contentsOf: number..<number + 1) }

    fileprivate mutating func remove(_ number: Int) { remove(contentsOf: number..<number + 1) }
}
