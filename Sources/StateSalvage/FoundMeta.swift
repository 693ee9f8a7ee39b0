import StateEngine
import StateSQLite

/// The contents of `meta`, as far as they are intact, and its damaged metadata.
///
/// The loss of its own rows does not matter to the new store, which has others in their place.
struct FoundMeta {
    /// A damaged metadata entry.
    struct LostMetadata {
        var page: Int
        /// Its name, as far as it can be read; otherwise nil.
        var name: [UInt8]?
    }

    /// The pages that hold it, including those that continue long rows.
    private(set) var pages: Set<Int> = []
    /// The values that match their checksums.
    private(set) var values: [StoreMetadata.Name: String] = [:]
    /// The metadata entries that match their checksums.
    private(set) var metadata: [String: String] = [:]
    private(set) var lostMetadata: [LostMetadata] = []
    /// Pages that its root leads to but that are not its own.
    private(set) var lostPages: [Int] = []
    /// Rows that cannot be identified.
    private var unknownRows: [LostMetadata] = []

    init(_ store: StorePages, free: Set<Int>) {
        let root = StoreMap.root(of: "meta", store)
        let way = Way(store, from: root)
        for number in store.written.ranges.joined() where number > 1 {
            // If the way to its pages is intact, other pages are remains of earlier ones.
            let isPart = way.pages.contains(number) || !way.isWhole && !free.contains(number)
            guard isPart, let page = store.tree(number) else { continue }
            if page.kind == .indexLeaf || page.kind == .indexInterior {
                read(page.indexLeaf ?? page, number, store)
            }
        }
        for number in way.damagedPages {
            // Perhaps only the first byte is damaged.
            if let page = store.tree(number) {
                let (lost, unknown) = (lostMetadata, unknownRows)
                read(page, number, store)
                if pages.contains(number) { continue }
                (lostMetadata, unknownRows) = (lost, unknown)
            }
            // If everything else is there, only the schema is damaged.
            if number != root || values[.epoch] == nil { lostPages.append(number) }
        }
        // An unidentified row may be one of those that are missing.
        let missingCount = StoreMetadata.Name.allCases.count - values.count
        if unknownRows.count > missingCount { lostMetadata += unknownRows.dropFirst(missingCount) }
    }

    /// Whether all metadata entries are there.
    var hasAllMetadata: Bool { lostMetadata.isEmpty && lostPages.isEmpty }

    /// The pages that the root leads to.
    private struct Way {
        var pages: Set<Int> = []
        /// Pages that do not belong to the table according to their first byte, or cannot be read.
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

    /// Takes a row, and returns whether it is intact.
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

    /// Records a row that cannot be read completely, by what is left of it.
    private mutating func lose(_ bytes: ArraySlice<UInt8>, _ number: Int) {
        let prefix = Array(StoreMetadata.metadataPrefix.utf8)
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: prefix) }) else {
            unknownRows.append(LostMetadata(page: number))
            return
        }
        // The end of the name is unknown: the words that follow begin with a position, and a line
        // ends it.
        let name = bytes[start...].prefix { $0 >= 0x20 }.prefix(Key.maximumByteCount)
        lostMetadata.append(LostMetadata(page: number, name: Array(name)))
    }
}

extension StoreMetadata.Name {
    /// Whether these bytes are the name, with at most one wrong byte.
    fileprivate func isLike(_ bytes: Bytes) -> Bool {
        let name = rawValue.utf8
        return name.count == bytes.count && zip(name, bytes).count { $0 != $1 } <= 1
    }
}
