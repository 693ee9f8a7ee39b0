import StateEngine

/// The rows of a history that are whole, wherever in the file they lie, in their order; and what is not whole.
///
/// A row counts if it matches its checksum, whatever the pages that lead to it look like. Where compaction was, though, rows
/// that were taken away may lie on pages that are no part of the table, and behind the last row of those that are: of what
/// nothing leads to only rows above the compacted revision count, which are never taken away.
struct FoundHistory {
    /// Where a whole row lies.
    struct Row {
        var place: HistoryCheck.Place
        /// Its number as the page has it, which no checksum covers.
        var number: Int64
        fileprivate var page: Int32
        fileprivate var cell: Int32
    }

    /// A row that does not match its checksum, or cannot be read as one.
    struct DamagedRow {
        var page: Int
        /// What it says of itself, true or not; nil where it cannot be read.
        var number: Int64?
        var revision: Int64?
        var key: [UInt8]?
    }

    let map: StoreMap
    private(set) var rows: [Row] = []
    private(set) var damagedRows: [DamagedRow] = []
    /// Pages that nothing whole uses.
    private(set) var strayPages: [Int] = []

    private let pages: StorePages
    /// Pages that continue rows that are whole.
    private var overflowPages: Set<Int> = []

    /// Reads the pages twice, the second time those that no row was found on.
    init(_ pages: StorePages) {
        self.pages = pages
        map = StoreMap(pages)
        var rest: [Int] = []
        for number in 2...max(2, pages.pageCount) {
            guard let bytes = pages.page(number) else {
                strayPages.append(number)
                continue
            }
            let page = TreePage(bytes, isFirst: false)
            if map.isPart(page, number) { take(page, number) } else { rest.append(number) }
        }
        for number in rest where !overflowPages.contains(number) { takeStray(number) }
        strayPages.removeAll { overflowPages.contains($0) }
        rows.sort { $0.place < $1.place }
        removeDuplicates()
    }

    /// Whether a whole row is at this place.
    func contains(_ place: HistoryCheck.Place) -> Bool {
        var (low, high) = (0, rows.count)
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].place < place { low = middle + 1 } else { high = middle }
        }
        return low < rows.count && rows[low].place == place
    }

    /// The bytes of a row.
    func record(of row: Row) -> [UInt8]? {
        guard let bytes = pages.page(Int(row.page)) else { return nil }
        return TreePage(bytes, isFirst: false).cell(Int(row.cell)).flatMap {
            pages.record($0, in: bytes)
        }
    }

    /// The rows of a leaf of the table.
    private mutating func take(_ page: TreePage, _ number: Int) {
        var end = page.bytes.count
        var index = 0
        let count = page.likelyCellCount()
        // Behind the last pointer there may be more: where the number of cells is damaged, and rows that compaction took away.
        while index < page.pointerCount(before: end) {
            let place = page.pointer(index)
            if let row = wholeRow(page, number, index) {
                end = min(end, place)
                let isInUse =
                    index < count
                    || row.place.revision > map.number(.compacted) ?? .max
                if isInUse { rows.append(row) }
            } else if index < count, place != 0 {
                damagedRows.append(damagedRow(page, number, index))
            }
            index += 1
        }
    }

    /// The rows of a page that is no leaf of the table, or does not look like one; where the tree leads to it, it is one.
    private mutating func takeStray(_ number: Int) {
        guard let bytes = pages.page(number) else { return }
        let page = TreePage(bytes, isFirst: false)
        let isLed = map.damagedLeaves.contains(number) && !map.free.contains(number)
        let count = isLed ? page.likelyCellCount() : 0
        var isUsed =
            map.free.contains(number) || map.interiors.contains(number)
            || map.meta.pages.contains(number)
        var end = bytes.count
        var index = 0
        while index < page.pointerCount(before: end) {
            if let row = wholeRow(page, number, index) {
                end = min(end, page.pointer(index))
                isUsed = true
                if index < count || row.place.revision > leastStrayRevision { rows.append(row) }
            }
            index += 1
        }
        if !isUsed { strayPages.append(number) }
    }

    /// Above this, a row that nothing leads to was not taken away.
    private var leastStrayRevision: Int64 {
        map.number(.compacted) ?? (map.free.isEmpty ? 0 : .max)
    }

    private mutating func wholeRow(_ page: TreePage, _ number: Int, _ index: Int) -> Row? {
        guard let cell = page.cell(index), let record = pages.record(cell, in: page.bytes) else {
            return nil
        }
        let place = record.withUnsafeBytes { bytes -> HistoryCheck.Place? in
            guard let (change, checksum) = StoredRecord.historyRow(bytes),
                StoredRecord.isWhole(change, checksum)
            else { return nil }
            return HistoryCheck.Place(revision: change.revision, ordinal: change.ordinal)
        }
        guard let place else { return nil }
        overflowPages.formUnion(pages.overflowPages(of: cell))
        return Row(place: place, number: cell.number, page: Int32(number), cell: Int32(index))
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

    private mutating func removeDuplicates() {
        var last: HistoryCheck.Place?
        rows.removeAll { row in
            defer { last = row.place }
            return row.place == last
        }
    }
}
