import StateEngine

/// What the pages of a store are, as far as they tell.
struct StoreMap {
    /// The leaves of `history` that its root leads to.
    private(set) var leaves: Set<Int> = []
    /// Interior pages of `history` that could be read.
    private(set) var interiors: Set<Int> = []
    /// Whether the way from the root to every leaf could be read.
    private(set) var isWhole = true
    /// Pages in use for nothing; they may hold old rows.
    private(set) var free: Set<Int> = []
    /// Whether the list of these has as many as the header says.
    private let isFreeListWhole: Bool
    /// Pages that the root of `history` leads to and that are no leaves of it by what they say of themselves.
    private(set) var damagedLeaves: Set<Int> = []
    let meta: FoundMeta

    init(_ pages: StorePages) {
        var free: Set<Int> = []
        isFreeListWhole = StoreMap.readFreeList(pages, &free)
        self.free = free
        meta = FoundMeta(pages, free: free)
        // Where the schema cannot be read, it begins where it always does.
        walk(pages, from: StoreMap.root(of: "history", pages) ?? 2)
        for number in 2...max(2, pages.pageCount) where !free.contains(number) {
            guard let bytes = pages.page(number) else { continue }
            let page = TreePage(bytes, isFirst: false)
            // A leaf that nothing leads to; where the free list is damaged it may be one of those.
            if page.kind == .leaf, !leaves.contains(number), isFreeListWhole { isWhole = false }
        }
    }

    /// A number of `meta`; nil where it is not known.
    func number(_ name: StoreMetadata.Name) -> Int64? { meta.values[name].flatMap { Int64($0) } }

    /// Whether the rows of a leaf belong to the history for certain, or as far as can be known.
    func isPart(_ page: TreePage, _ number: Int) -> Bool {
        guard page.kind == .leaf, !free.contains(number) else { return false }
        return leaves.contains(number) || !isWhole
    }

    /// Where a table begins, as the schema on the first page says.
    static func root(of table: String, _ pages: StorePages) -> Int? {
        guard let bytes = pages.page(1) else { return nil }
        let page = TreePage(bytes, isFirst: true)
        guard page.kind == .leaf else { return nil }
        for index in 0..<min(page.cellCount, page.pointerCount(before: bytes.count)) {
            guard let cell = page.cell(index), cell.overflow == 0 else { continue }
            let root = bytes[cell.local].withUnsafeBytes { bytes -> Int? in
                guard let row = StoredRecord(bytes, columnCount: 5), row.bytes(1).text == table
                else { return nil }
                return Int(exactly: row.number(3))
            }
            if let root, (2...max(2, pages.pageCount)).contains(root) { return root }
        }
        return nil
    }

    private mutating func walk(_ pages: StorePages, from root: Int) {
        var next = [root]
        while let number = next.popLast() {
            guard number > 1, !leaves.contains(number), !interiors.contains(number),
                let bytes = pages.page(number)
            else {
                isWhole = false
                continue
            }
            let page = TreePage(bytes, isFirst: false)
            if page.kind == .leaf {
                leaves.insert(number)
            } else if let children = page.children {
                interiors.insert(number)
                // A leaf of which the first byte is damaged may look like one.
                let isOne = children.allSatisfy { (2...max(2, pages.pageCount)).contains($0) }
                if !isOne { damagedLeaves.insert(number) }
                next += children.reversed()
            } else {
                isWhole = false
                damagedLeaves.insert(number)
            }
        }
        guard !leaves.isDisjoint(with: free) else { return }
        // One of the two is damaged: the list where its length does not fit, else the way to the leaves.
        if isFreeListWhole { isWhole = false } else { free.subtract(leaves) }
    }

    /// Follows the trunk pages of the list. https://www.sqlite.org/fileformat2.html#the_freelist
    ///
    /// - Returns: Whether it has as many pages as the header says.
    private static func readFreeList(_ pages: StorePages, _ free: inout Set<Int>) -> Bool {
        guard let header = pages.page(1) else { return false }
        var trunk = header.number(at: 32, bytes: 4)
        while trunk > 1, trunk <= pages.pageCount, !free.contains(trunk),
            let bytes = pages.page(trunk)
        {
            free.insert(trunk)
            let count = min(bytes.number(at: 4, bytes: 4), bytes.count / 4 - 2)
            for index in 0..<count { free.insert(bytes.number(at: 8 + 4 * index, bytes: 4)) }
            trunk = bytes.number(at: 0, bytes: 4)
        }
        return free.count == header.number(at: 36, bytes: 4)
    }
}
