import StateEngine
import StateSQLite

/// What `meta` says, as far as it is whole, and which metadata in it are not.
///
/// Its own rows that are lost are no loss to the new store, which has others in their place.
struct FoundMeta {
    /// A note that is not whole.
    struct LostMetadata {
        var page: Int
        /// What it says its name is; nil where it cannot be read.
        var name: [UInt8]?
    }

    /// The pages that hold it, those that continue long rows among them.
    private(set) var pages: Set<Int> = []
    /// The values that match their checksums.
    private(set) var values: [StoreMetadata.Name: String] = [:]
    /// The notes that match theirs.
    private(set) var metadata: [String: String] = [:]
    private(set) var lostMetadata: [LostMetadata] = []
    /// Pages that its root leads to and that are none of its own.
    private(set) var lostPages: [Int] = []
    /// How many rows there are of which nothing can be told.
    private var unknownRows: [LostMetadata] = []

    init(_ store: StorePages, free: Set<Int>) {
        let root = StoreMap.root(of: "meta", store)
        let way = Way(store, from: root)
        for number in store.written.ranges.joined() where number > 1 {
            // Where the way to them is whole, others are what is left of pages of before.
            let isPart = way.pages.contains(number) || !way.isWhole && !free.contains(number)
            guard isPart, let page = store.tree(number) else { continue }
            if page.kind == .indexLeaf || page.kind == .indexInterior {
                read(page.indexLeaf ?? page, number, store)
            }
        }
        for number in way.damagedPages {
            // The first byte alone may be what is damaged.
            if let page = store.tree(number) {
                let (lost, unknown) = (lostMetadata, unknownRows)
                read(page, number, store)
                if pages.contains(number) { continue }
                (lostMetadata, unknownRows) = (lost, unknown)
            }
            // Where all the rest is there, the schema is what is damaged.
            if number != root || values[.epoch] == nil { lostPages.append(number) }
        }
        // A row of which nothing can be told may be one of those that are missing.
        let missingCount = StoreMetadata.Name.allCases.count - values.count
        if unknownRows.count > missingCount { lostMetadata += unknownRows.dropFirst(missingCount) }
    }

    /// Whether every note is there.
    var hasAllMetadata: Bool { lostMetadata.isEmpty && lostPages.isEmpty }

    /// The pages that the root leads to.
    private struct Way {
        var pages: Set<Int> = []
        /// What is no page of the table by its first byte, or cannot be read.
        var damagedPages: [Int] = []
        var isWhole: Bool

        init(_ store: StorePages, from root: Int?) {
            isWhole = root != nil
            var way = PageWay()
            var next = [root].compactMap { $0 }
            while let number = next.popLast() {
                guard number > 1, !pages.contains(number) else {
                    isWhole = false
                    continue
                }
                guard let page = store.tree(number),
                    page.kind == .indexLeaf || page.kind == .indexInterior
                else {
                    damagedPages.append(number)
                    isWhole = false
                    continue
                }
                pages.insert(number)
                guard page.kind == .indexInterior else { continue }
                guard let children = page.children else {
                    isWhole = false
                    continue
                }
                next += children.filter { way.leads(to: $0) }
            }
        }
    }

    private mutating func read(_ page: TreePage, _ number: Int, _ store: StorePages) {
        let end = page.pointerCount(before: page.bytes.count) - 2
        let isInterior = page.kind == .indexInterior
        let count = isInterior ? page.cellCount : page.likelyCellCount(inIndex: true)
        var room = PageRoom(page, times: 8)
        for index in 0..<max(0, min(count, end)) {
            guard let cell = page.cell(index, inIndex: true) else {
                if room.holds(0) { unknownRows.append(LostMetadata(page: number)) }
                continue
            }
            guard room.isNew(cell.local.lowerBound) else { continue }
            let local = page.bytes[cell.local]
            guard let record = store.record(cell, in: page.bytes) else {
                if room.holds(local.count) { lose(local, number) }
                continue
            }
            let isWhole = record.withUnsafeBytes { bytes in
                take(bytes, number) { if room.holds(local.count) { $0.lose(local, number) } }
            }
            guard isWhole else { continue }
            pages.insert(number)
            pages.formUnion(store.overflowPages(of: cell))
        }
    }

    /// Takes a row over, and says whether it is whole.
    private mutating func take(
        _ bytes: Bytes,
        _ number: Int,
        orLose lose: (inout FoundMeta) -> Void
    ) -> Bool {
        guard let row = StoredRecord(bytes, columnCount: 3) else {
            lose(&self)
            return false
        }
        let (name, value) = (row.bytes(0).text, row.bytes(1).text)
        guard row.number(2) == Int64(StoreMetadata.checksum(name, value)) else {
            let isMetadata = !StoreMetadata.Name.allCases.contains { $0.isLike(row.bytes(0)) }
            if isMetadata {
                lostMetadata.append(LostMetadata(page: number, name: Array(row.bytes(0))))
            }
            return false
        }
        if let known = StoreMetadata.Name(rawValue: name) {
            values[known] = value
        } else if name.hasPrefix(StoreMetadata.metadataPrefix) {
            metadata[name] = value
        }
        return true
    }

    /// Notes a row that cannot be read as one, by what is there of it.
    private mutating func lose(_ bytes: ArraySlice<UInt8>, _ number: Int) {
        let prefix = Array(StoreMetadata.metadataPrefix.utf8)
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: prefix) }) else {
            unknownRows.append(LostMetadata(page: number))
            return
        }
        // Where the name ends is not known: the words that follow begin with a position, and a line ends it.
        let name = bytes[start...].prefix { $0 >= 0x20 }.prefix(Key.maximumByteCount)
        lostMetadata.append(LostMetadata(page: number, name: Array(name)))
    }
}

extension StoreMetadata.Name {
    /// Whether these bytes are the name, but for one of them at most.
    fileprivate func isLike(_ bytes: Bytes) -> Bool {
        let name = rawValue.utf8
        return name.count == bytes.count && zip(name, bytes).count { $0 != $1 } <= 1
    }
}
