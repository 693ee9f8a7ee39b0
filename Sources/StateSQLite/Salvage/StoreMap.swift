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
    private var isFreeListWhole = false
    /// The pages of `meta`.
    private(set) var metaPages: Set<Int> = []
    /// What `meta` says, as far as it matches its checksums.
    private(set) var meta: [StoreMetadata.Name: String] = [:]
    /// The notes of `meta`, as far as they match theirs.
    private(set) var notes: [String: String] = [:]

    init(_ pages: StorePages) {
        readFreeList(pages)
        walk(pages, from: StoreMap.root(pages))
        for number in 2...max(2, pages.pageCount) where !free.contains(number) {
            guard let bytes = pages.page(number) else { continue }
            let page = TreePage(bytes, isFirst: false)
            switch page.kind {
            case .indexLeaf, .indexInterior: readMeta(page, number)
            // A leaf that nothing leads to; where the free list is damaged it may be one of those.
            case .leaf where !leaves.contains(number) && isFreeListWhole: isWhole = false
            default: break
            }
        }
    }

    /// A number of `meta`; nil where it is not known.
    func number(_ name: StoreMetadata.Name) -> Int64? { meta[name].flatMap { Int64($0) } }

    /// Whether the rows of a leaf belong to the history for certain, or as far as can be known.
    func isPart(_ page: TreePage, _ number: Int) -> Bool {
        guard page.kind == .leaf, !free.contains(number) else { return false }
        return leaves.contains(number) || !isWhole
    }

    /// Where `history` begins: what the schema on the first page says, else where it always does.
    private static func root(_ pages: StorePages) -> Int {
        guard let bytes = pages.page(1) else { return 2 }
        let page = TreePage(bytes, isFirst: true)
        guard page.kind == .leaf else { return 2 }
        for index in 0..<min(page.cellCount, page.pointerCount(before: bytes.count)) {
            guard let cell = page.cell(index), cell.overflow == 0 else { continue }
            let root = bytes[cell.local].withUnsafeBytes { bytes -> Int? in
                guard let row = StoredRecord(bytes, columnCount: 5), row.bytes(1).text == "history"
                else { return nil }
                return Int(exactly: row.number(3))
            }
            if let root, (2...max(2, pages.pageCount)).contains(root) { return root }
        }
        return 2
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
                next += children.reversed()
            } else {
                isWhole = false
            }
        }
        guard !leaves.isDisjoint(with: free) else { return }
        // One of the two is damaged: the list where its length does not fit, else the way to the leaves.
        if isFreeListWhole { isWhole = false } else { free.subtract(leaves) }
    }

    /// Follows the trunk pages of the list. https://www.sqlite.org/fileformat2.html#the_freelist
    private mutating func readFreeList(_ pages: StorePages) {
        guard let header = pages.page(1) else { return }
        var trunk = header.number(at: 32, bytes: 4)
        while trunk > 1, trunk <= pages.pageCount, !free.contains(trunk),
            let bytes = pages.page(trunk)
        {
            free.insert(trunk)
            let count = min(bytes.number(at: 4, bytes: 4), bytes.count / 4 - 2)
            for index in 0..<count { free.insert(bytes.number(at: 8 + 4 * index, bytes: 4)) }
            trunk = bytes.number(at: 0, bytes: 4)
        }
        isFreeListWhole = free.count == header.number(at: 36, bytes: 4)
    }

    private mutating func readMeta(_ page: TreePage, _ number: Int) {
        let end = page.pointerCount(before: page.bytes.count) - 2
        for index in 0..<max(0, min(page.cellCount, end)) {
            guard let cell = page.cell(index, inIndex: true), cell.overflow == 0 else { continue }
            page.bytes[cell.local].withUnsafeBytes { bytes in
                guard let row = StoredRecord(bytes, columnCount: 3) else { return }
                let (name, value) = (row.bytes(0).text, row.bytes(1).text)
                guard row.number(2) == Int64(StoreMetadata.checksum(name, value)) else { return }
                if let known = StoreMetadata.Name(rawValue: name) {
                    meta[known] = value
                } else if name.hasPrefix(StoreMetadata.notePrefix) {
                    notes[name] = value
                } else {
                    return
                }
                metaPages.insert(number)
            }
        }
    }
}
