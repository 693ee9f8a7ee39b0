import StateEngine
import StateSQLite

/// The roles of the pages of a store, as far as they can be determined.
struct StoreMap {
    /// The leaves of `history` that its root leads to.
    private(set) var leaves: Set<Int> = []
    /// Interior pages of `history` that could be read.
    private(set) var interiors: Set<Int> = []
    /// Whether the way from the root to every leaf could be read.
    private(set) var isWhole = true
    /// Unused pages; they may hold old rows.
    private(set) var free: Set<Int> = []
    /// Pages that the root of `history` leads to, but that are not leaves according to their own
    /// contents.
    private(set) var damagedLeaves: Set<Int> = []
    let meta: FoundMeta

    /// Leaves whose rows do not have the numbers that the pages above give.
    private var misplacedLeaves: Set<Int> = []

    init(_ pages: StorePages) {
        var free: Set<Int> = []
        let isListWhole = StoreMap.readFreeList(pages, &free)
        self.free = free
        meta = FoundMeta(pages, free: free)
        // If the schema cannot be read, it begins where it always does.
        walk(pages, from: StoreMap.root(of: "history", pages) ?? 2)
        // If a leaf is also in the free list, one of the two is damaged: the way to it, if it does
        // not fit there, otherwise the list.
        if !misplacedLeaves.isEmpty { isWhole = false }
        let used = leaves.subtracting(misplacedLeaves).union(interiors).union(meta.pages)
            .union(overflowPages(pages))
        let isListRight = isListWhole && free.isDisjoint(with: used)
        self.free.subtract(used)
        // If the list lacks a page, that is a leaf that nothing leads to.
        if isListRight, hasStrayLeaf(pages) { isWhole = false }
    }

    private func hasStrayLeaf(_ pages: StorePages) -> Bool {
        pages.written.ranges.joined().contains { number in
            number > 1 && !free.contains(number) && !leaves.contains(number)
                && pages.tree(number)?.kind == .leaf
        }
    }

    /// Pages that continue rows of the leaves.
    private func overflowPages(_ pages: StorePages) -> Set<Int> {
        var numbers: Set<Int> = []
        for leaf in leaves.subtracting(misplacedLeaves) {
            for case let cell? in pages.tree(leaf)?.cells ?? [] where cell.overflow > 0 {
                numbers.formUnion(pages.overflowPages(of: cell))
            }
        }
        return numbers
    }

    /// A number of `meta`; nil if unknown.
    func number(_ name: StoreMetadata.Name) -> Int64? { meta.values[name].flatMap(name.number) }

    /// What rules have removed; nothing if that is unknown.
    var floors: HistoryFloors {
        meta.values[.historyFloors].flatMap(HistoryFloors.init) ?? HistoryFloors()
    }

    /// Whether the rows of a leaf belong to the history, as far as can be known.
    func isPart(_ page: TreePage, _ number: Int) -> Bool {
        guard page.kind == .leaf, !free.contains(number), !damagedLeaves.contains(number) else {
            return false
        }
        return leaves.contains(number) || !isWhole
    }

    /// The root page of a table, according to the schema on the first page.
    static func root(of table: String, _ pages: StorePages) -> Int? {
        guard let page = pages.tree(1), page.kind == .leaf else { return nil }
        for case let cell? in page.cells where cell.overflow == 0 {
            let root = page.bytes[cell.local].withUnsafeBytes { bytes -> Int? in
                guard let row = StoredRecord(bytes, columnCount: 5), row.bytes(1).text == table
                else { return nil }
                return Int(exactly: row.number(3))
            }
            if let root, (2...max(2, pages.pageCount)).contains(root) { return root }
        }
        return nil
    }

    private mutating func walk(_ pages: StorePages, from root: Int) {
        // With the numbers of the rows below a page, according to the pages above it.
        var next: [(number: Int, rows: ClosedRange<Int64>)] = [(root, Int64.min...Int64.max)]
        var way = PageWay()
        while let (number, rows) = next.popLast() {
            guard number > 1, !leaves.contains(number), !interiors.contains(number),
                let page = pages.tree(number)
            else {
                isWhole = false
                continue
            }
            if page.kind == .leaf, !page.isLikelyInterior(in: pages.pageCount) {
                leaves.insert(number)
                if !page.hasRows(in: rows) { misplacedLeaves.insert(number) }
            } else if let children = page.children {
                interiors.insert(number)
                // A leaf with a damaged first byte may look like one.
                let isOne = children.allSatisfy { (2...max(2, pages.pageCount)).contains($0) }
                if !isOne { damagedLeaves.insert(number) }
                next += zip(children, page.rows(ofChildrenIn: rows)).reversed()
                    .filter { way.leads(to: $0.0) }.map { (number: $0, rows: $1) }
            } else {
                isWhole = false
                damagedLeaves.insert(number)
            }
        }
    }

    /// Follows the trunk pages of the free list.
    /// https://www.sqlite.org/fileformat2.html#the_freelist
    ///
    /// - Returns: Whether it has as many pages as the header says, and all of them are pages of the
    ///   store.
    private static func readFreeList(_ pages: StorePages, _ free: inout Set<Int>) -> Bool {
        guard let header = pages.page(1) else { return false }
        let known = 2...max(2, pages.pageCount)
        var trunk = header.number(at: 32, bytes: 4)
        while trunk > 1, trunk <= pages.pageCount, !free.contains(trunk),
            let bytes = pages.page(trunk)
        {
            free.insert(trunk)
            let count = min(bytes.number(at: 4, bytes: 4), bytes.count / 4 - 2)
            for index in 0..<count {
                let number = bytes.number(at: 8 + 4 * index, bytes: 4)
                if known.contains(number) { free.insert(number) }
            }
            trunk = bytes.number(at: 0, bytes: 4)
        }
        return free.count == header.number(at: 36, bytes: 4)
    }
}

/// The pages to which a walk through a tree has led.
///
/// Otherwise pages that lead to each other would be recorded as often as they name each other: a
/// page has room for a thousand names.
struct PageWay {
    private var counts: [Int: Int] = [:]

    /// Whether to visit a page that the walk leads to.
    ///
    /// The second visit shows that two pages lead to it; further visits are useless.
    mutating func leads(to number: Int) -> Bool {
        counts[number, default: 0] += 1
        return (counts[number] ?? 0) <= 2
    }
}

/// Limits how much of one page is read: otherwise cells that overlap, and pointers to the same
/// cell, would make the rows of a thousand pages from one page.
struct PageRoom {
    /// The least number of bytes of a row.
    private static let leastByteCount = 16
    private var places: Set<Int> = []
    private var byteCount: Int

    /// Room for `times` pages of cells: a flipped bit in the size of an intact row may make it seem
    /// as long as a page, and damaged rows may overlap.
    init(_ page: TreePage, times: Int) { byteCount = page.bytes.count * times }

    /// Whether a cell was not read before.
    mutating func isNew(_ place: Int) -> Bool { places.insert(place).inserted }

    /// Whether the page has room for `count` more bytes, besides everything found on it so far.
    mutating func holds(_ count: Int) -> Bool {
        byteCount -= max(count, PageRoom.leastByteCount)
        return byteCount >= 0
    }
}
