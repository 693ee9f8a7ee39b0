import CSQLite
package import StateEngine
package import StateLog
import StatePlatform

/// What can still be read of the database of a settled store, which is not changed.
///
/// Rows are read by SQL. Where SQLite cannot read a page, the keys before and after it are found from
/// the other side, and by asking for keys in between. What is left unread then is read by the program
/// `sqlite3`, if it is installed: its `.recover` also finds rows on pages that nothing leads to. If the
/// first page is damaged, that of an empty store takes its place in a copy: it says the same of where
/// the tables are.
///
/// For one thread.
package final class StoreRemains {
    /// Keys between which nothing could be read; nil for no bound.
    package struct Gap: Hashable {
        package var after: [UInt8]?
        package var before: [UInt8]?
    }

    /// A row that is not the one that was written, by what it says of itself.
    package struct DamagedRow: Hashable {
        package var key: [UInt8]
        package var revision: Int64

        package init(key: [UInt8], revision: Int64) { (self.key, self.revision) = (key, revision) }
    }

    /// What `meta` says of the store, as far as it is whole.
    package struct Known {
        /// The identity of its log.
        package var log: Epoch
        package var life: UInt64
        /// Up to there the rows have everything of the log, and the last revision before that.
        package var place: LogPlace
        package var revision: Int64
        /// Up to this revision deleted keys have no rows.
        package var floor: Int64
        /// Below this revision nobody may ask for the past.
        package fileprivate(set) var leastFloor: Int64 = 0
        package var leastRevision: Int64
        package var rowCount: Int64
        package var isClosed: Bool
        /// Whether the log is that of the store that this one was copied from.
        package var isNewCopy: Bool
    }

    /// Nil if anything of it is damaged.
    package private(set) var known: Known?
    package private(set) var metadata: [String: String] = [:]
    package private(set) var floors: HistoryFloors?
    /// Names of metadata that is damaged.
    package private(set) var lostMetadata: [String] = []
    /// Whether there may be metadata that could not be read.
    package private(set) var lacksMetadata = false
    /// Damage and what was done about it, a sentence each.
    package private(set) var notes: [String] = []
    package private(set) var damagedRows: Set<DamagedRow> = []
    package private(set) var gaps: [Gap] = []
    /// Rows that are whole.
    package private(set) var rowCount: Int64 = 0

    private let location: StoreLocation
    /// Names for files of its own begin with it.
    private let scratch: String
    private let runRecover: (_ database: String, _ target: String) -> Int32?
    private var observed: ObservedStore?
    private var connection: SQLiteConnection?
    /// What `sqlite3` has found.
    private var recovered: SQLiteConnection?

    private var copy: String { scratch + ".copy" }
    private var recovery: String { scratch + ".recovered" }

    /// The files that it makes.
    package static func files(_ scratch: String) -> [String] {
        [".copy", ".copy-wal", ".copy-shm", ".copy.new", ".recovered", ".recovered-journal"]
            .map { scratch + $0 }
    }

    /// Opens a database and reads all of it.
    ///
    /// - Parameters:
    ///   - location: The database, which exists.
    ///   - scratch: A path with which names of new files may begin.
    ///   - runRecover: Has `sqlite3` put what it can recover of a database into another one, and returns
    ///     its exit code; nil if it is not installed.
    ///   - progress: Called regularly with the number of rows so far.
    /// - Throws: ``StateError/Code/newerFormat``; ``StateError/Code/storage`` if nothing can be read
    ///   or written.
    package init(
        _ location: StoreLocation,
        scratch: String,
        recovering runRecover: @escaping (_ database: String, _ target: String) -> Int32?,
        _ progress: (Int64) -> Void
    ) throws {
        (self.location, self.scratch, self.runRecover) = (location, scratch, runRecover)
        try open()
        readFacts()
        try survey(progress)
        if needsRecovery {
            notes += [recover()].compactMap(\.self)
            if recovered != nil { try survey(progress) }
        }
    }

    deinit {
        (observed, connection, recovered) = (nil, nil, nil)
        for path in StoreRemains.files(scratch) { unlink(path) }
    }

    // MARK: Opening

    private func open() throws {
        do {
            let store = try ObservedStore(location)
            try SettledDatabase.checkSchema(store.connection)
            (observed, connection) = (store, store.connection)
        } catch let error where StoreRemains.isDamage(error) {
            notes.append(
                "the first page of \(location.database) cannot be used: another took its place"
            )
            try openCopy()
        }
        guard let connection else { return }
        // Metadata that is whole is believed: a flipped bit in the header looks like another format.
        let format = try? connection.text("SELECT value FROM meta WHERE name='format version'")
        guard format != "\(SettledDatabase.formatVersion)", observed != nil else { return }
        do throws(StateError) {
            try StoreHeader.checkHeader(of: connection)
        } catch {
            guard error.code != .newerFormat else { throw error }
        }
    }

    private static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as StateError: error.code == .corrupt
        case let failure as SQLiteFailure:
            failure.isDamage || failure.primaryCode == SQLITE_IOERR
                || failure.primaryCode == SQLITE_ERROR
        default: false
        }
    }

    /// Opens a copy with the first page of an empty store.
    private func openCopy() throws {
        try copyFiles()
        let empty = StoreLocation(path: scratch + ".copy.new")
        defer { unlink(empty.database) }
        try SettledDatabase.create(at: empty)
        do throws(OpenFailure) {
            let descriptor = try NamedFile.open(copy, O_RDWR | O_NOFOLLOW)
            defer { close(descriptor) }
            let source = try NamedFile.open(empty.database, O_RDONLY | O_NOFOLLOW)
            defer { close(source) }
            var page = [UInt8](repeating: 0, count: StoreHeader.pageByteCount)
            let pageCount = UInt32(clamping: (fileByteCount(copy) ?? 0) / Int64(page.count))
            guard pread(source, &page, page.count, 0) == page.count else { return }
            // https://www.sqlite.org/fileformat2.html#in_header_database_size
            for index in 0..<4 {
                page[28 + index] = UInt8(truncatingIfNeeded: pageCount >> (24 - 8 * UInt32(index)))
            }
            guard pwrite(descriptor, page, page.count, 0) == page.count else { return }
        } catch {
            throw StateError(.storage, error.sentence(copy))
        }
        connection = try SQLiteConnection(path: copy)
    }

    /// Copies the database and SQLite's own log of it.
    private func copyFiles() throws(StateError) {
        for suffix in ["", "-wal"] where FileIdentity(path: location.database + suffix) != nil {
            try StoreRemains.copy(location.database + suffix, to: copy + suffix)
        }
    }

    private static func copy(_ path: String, to other: String) throws(StateError) {
        unlink(other)
        guard let source = try StoreLocation.open(path) else { return }
        defer { close(source) }
        let target = StatePlatform.open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard target >= 0 else {
            throw StateError(.storage, "\(other) cannot be created: \(lastSystemError())")
        }
        defer { close(target) }
        var piece = [UInt8](repeating: 0, count: StoreHeader.pageByteCount)
        var offset: off_t = 0
        let size = off_t(fileByteCount(path) ?? 0)
        while offset < size {
            // What the disk cannot read is zeros.
            let count = max(pread(source, &piece, piece.count, offset), 0)
            let length = count > 0 ? count : Int(min(off_t(piece.count), size - offset))
            if count == 0 { piece = [UInt8](repeating: 0, count: piece.count) }
            guard pwrite(target, piece, length, offset) == length else {
                throw StateError(.noSpace, "\(other) cannot be written: \(lastSystemError())")
            }
            offset += off_t(length)
        }
    }

    // MARK: Metadata

    /// The names and texts of `meta` that are whole.
    private func readTexts() -> [String: String] {
        var texts: [String: String] = [:]
        let select = try? connection?.prepare("SELECT name, value, checksum FROM meta")
        while let select {
            let code = sqlite3_step(select.handle)
            guard code == SQLITE_ROW else {
                lacksMetadata = code != SQLITE_DONE
                return texts
            }
            let (name, text) = (select.text(at: 0), select.text(at: 1))
            if select.number(at: 2) == Int64(MetaWriter.checksum(name, text)) {
                texts[name] = text
            } else {
                lostMetadata.append(name)
            }
        }
        lacksMetadata = true
        return texts
    }

    private func readFacts() {
        var texts = readTexts()
        var rest = texts
        if let facts = try? SettledFacts(taking: &rest, of: location.database) {
            known = Known(facts)
            texts = rest
        }
        floors = HistoryFloors(texts[SQLiteBacking.Name.floors] ?? "")
        if lostMetadata.contains(SQLiteBacking.Name.floors) || lacksMetadata { floors = nil }
        if let least = texts[SQLiteBacking.Name.floor].flatMap({ Int64($0) }) {
            known?.leastFloor = least
        }
        let prefix = MetaWriter.metadataPrefix
        metadata = texts.filter { $0.key.hasPrefix(prefix) }
        lostMetadata.removeAll { !$0.hasPrefix(prefix) }
    }

    /// What a name of the store's own says in the log; nil if it is not one that tells of the past.
    package static func floor(_ name: String, _ text: String?) -> (Int64?, HistoryFloors?)? {
        switch name {
        case SQLiteBacking.Name.floor: (text.flatMap { Int64($0) }, nil)
        case SQLiteBacking.Name.floors: (nil, HistoryFloors(text ?? ""))
        default: nil
        }
    }

    // MARK: Rows

    private var needsRecovery: Bool {
        !gaps.isEmpty || known.map { rowCount + Int64(damagedRows.count) < $0.rowCount } ?? true
    }

    private func survey(_ progress: (Int64) -> Void) throws {
        (rowCount, damagedRows, gaps) = (0, [], [])
        try readRows { _ in if rowCount % 4_096 == 0 { progress(rowCount) } }
    }

    /// Passes on each row that is whole, perhaps several of a key: the last change counts.
    ///
    /// - Throws: What `receive` throws.
    package func readRows(_ receive: (borrowing StoredChange) throws -> Void) throws {
        (rowCount, damagedRows) = (0, [])
        if let connection {
            var reading = RangeReading(connection)
            try reading.readAll { change in
                rowCount += 1
                try receive(change)
            }
            (gaps, damagedRows) = (reading.gaps, reading.damagedRows)
        }
        guard let recovered else { return }
        var keys: Set<[UInt8]> = []
        for table in ["newest", "lost_and_found"] {
            try readRecovered(recovered, table) { change in
                let key = Array(change.key)
                // Elsewhere it may be an older row of a page that is not used any more.
                let isMissing =
                    gaps.contains { $0.contains(key) } || damagedRows.contains { $0.key == key }
                guard isMissing else { return }
                if keys.insert(key).inserted { rowCount += 1 }
                try receive(change)
            }
        }
    }

    private func readRecovered(
        _ connection: SQLiteConnection,
        _ table: String,
        _ receive: (borrowing StoredChange) throws -> Void
    ) throws {
        // Rows of no table have their columns by number.
        let columns =
            table == "newest"
            ? SettledDatabase.columns
            : (0..<SettledDatabase.columnCount).map { "c\($0)" }.joined(separator: ", ")
        guard let select = try? connection.prepare("SELECT \(columns) FROM \(table)") else {
            return
        }
        while (try? select.step()) ?? false {
            let change = StoredChange(settledRow: select)
            if change.isSettledRow(with: select.number(at: 10)) { try receive(change) }
        }
    }

    // MARK: sqlite3

    /// Has `sqlite3` read the pages that SQLite does not find its way through.
    ///
    /// - Returns: Why that did not work; nil if it did.
    private func recover() -> String? {
        let advice = "rows on pages that SQLite cannot read are lost"
        do {
            // sqlite3 would move SQLite's own log into the database.
            if connection?.path != copy { try copyFiles() }
        } catch {
            return "\(location.database) cannot be copied for sqlite3: \(error); \(advice)"
        }
        unlink(recovery)
        guard let code = runRecover(copy, recovery) else {
            return "sqlite3 is not installed: \(advice)"
        }
        recovered = try? SQLiteConnection(path: recovery)
        if code == 0, recovered != nil { return nil }
        return
            "sqlite3 could not run .recover (exit code \(code)), which needs a build of SQLite with "
            + "SQLITE_ENABLE_DBPAGE_VTAB: \(advice)"
    }
}

extension StoreRemains.Known {
    fileprivate init(_ facts: SettledFacts) {
        log = facts.log
        life = facts.life.number
        (place, revision, floor) = (facts.place, facts.revision, facts.floor)
        (leastRevision, rowCount, isClosed) = (facts.leastRevision, facts.rowCount, facts.isClosed)
        isNewCopy = facts.former != nil && facts.life.number == 0
    }
}

extension StoreRemains.Gap {
    fileprivate func contains(_ key: [UInt8]) -> Bool {
        if let after, !after.lexicographicallyPrecedes(key) { return false }
        guard let before else { return true }
        return key.lexicographicallyPrecedes(before)
    }
}

extension StoredChange {
    /// Whether it is the one that was written with a checksum.
    fileprivate func isSettledRow(with checksum: Int64) -> Bool {
        checksum == Int64(CommitCoder.checksum(of: self)) && isPossible
    }
}

/// Reads rows in the order of keys, around pages that SQLite cannot read.
private struct RangeReading {
    /// Keys from `low` on, before `high`, if there is one.
    private struct Range {
        var low: [UInt8]
        var high: [UInt8]?
    }

    private let ascending: [SQLiteStatement]
    private let descending: [SQLiteStatement]
    private(set) var gaps: [StoreRemains.Gap] = []
    private(set) var damagedRows: Set<StoreRemains.DamagedRow> = []
    private var unread: [Range] = []

    /// Before every key, because none is empty.
    private static let lowest: [UInt8] = [0]
    /// So many ranges are tried at most.
    private static let rangeLimit = 2_000

    init(_ connection: SQLiteConnection) {
        func statements(_ order: String) -> [SQLiteStatement] {
            let select = "SELECT \(SettledDatabase.columns) FROM newest WHERE key >= ?1"
            return [select, select + " AND key < ?2"].compactMap {
                try? connection.prepare($0 + " ORDER BY key \(order)")
            }
        }
        (ascending, descending) = (statements("ASC"), statements("DESC"))
    }

    mutating func readAll(_ receive: (borrowing StoredChange) throws -> Void) throws {
        var ranges = [Range(low: RangeReading.lowest, high: nil)]
        guard ascending.count == 2, descending.count == 2 else {
            gaps = [StoreRemains.Gap()]
            return
        }
        var count = 0
        while let range = ranges.first {
            ranges.removeFirst()
            count += 1
            guard let rest = try read(range, receive) else { continue }
            let middle = RangeReading.middle(rest)
            guard count < RangeReading.rangeLimit, let middle else {
                unread.append(rest)
                continue
            }
            ranges.append(Range(low: rest.low, high: middle))
            ranges.append(Range(low: middle, high: rest.high))
        }
        joinUnread()
    }

    /// Reads a range from both ends.
    ///
    /// - Returns: What could not be read; nil if all of it was.
    private mutating func read(
        _ range: Range,
        _ receive: (borrowing StoredChange) throws -> Void
    ) throws -> Range? {
        var rest = range
        let isWhole = try read(ascending, range) { change in
            let key = Array(change.key)
            rest.low = key + [0]
            try receive(change)
        }
        if isWhole { return nil }
        _ = try read(descending, rest) { change in
            rest.high = Array(change.key)
            try receive(change)
        }
        return rest
    }

    /// - Returns: Whether the end of the range was reached.
    private mutating func read(
        _ statements: [SQLiteStatement],
        _ range: Range,
        _ receive: (borrowing StoredChange) throws -> Void
    ) throws -> Bool {
        let statement = statements[range.high == nil ? 0 : 1]
        let isAscending = statement === ascending[0] || statement === ascending[1]
        var last: [UInt8]?
        return try range.low.withUnsafeBytes { low in
            try (range.high ?? []).withUnsafeBytes { high in
                let parameters = Parameters(statement: statement.handle, first: 0)
                parameters.bind(1, text: low)
                if range.high != nil { parameters.bind(2, text: high) }
                defer { statement.reset() }
                while true {
                    do throws(SQLiteFailure) {
                        guard try statement.step() else { return true }
                    } catch {
                        return false
                    }
                    let change = StoredChange(settledRow: statement)
                    let key = Array(change.key)
                    guard change.isSettledRow(with: statement.number(at: 10)) else {
                        damagedRows.insert(.init(key: key, revision: change.revision))
                        continue
                    }
                    // A page that is read twice, or at another place than its own.
                    if let last {
                        let (one, other) = isAscending ? (last, key) : (key, last)
                        guard one.lexicographicallyPrecedes(other) else { continue }
                    }
                    last = key
                    try receive(change)
                }
            }
        }
    }

    /// A key about halfway; nil if there is none.
    private static func middle(_ range: Range) -> [UInt8]? {
        let high = range.high ?? [0xFF]
        let shared = zip(range.low, high).prefix { $0 == $1 }.count
        func number(_ key: [UInt8]) -> UInt64 {
            (shared..<shared + 8).reduce(0) { $0 << 8 | UInt64($1 < key.count ? key[$1] : 0) }
        }
        let (one, other) = (number(range.low), number(high))
        guard other > one, other - one > 1 else { return nil }
        let middle = one + (other - one) / 2
        return high[..<shared] + (0..<8).map { UInt8(truncatingIfNeeded: middle >> (56 - 8 * $0)) }
    }

    private mutating func joinUnread() {
        unread.sort { $0.low.lexicographicallyPrecedes($1.low) }
        for range in unread {
            // A bound that is a key with a 0 behind it comes after that key.
            let after = range.low.last == 0 ? Array(range.low.dropLast()) : range.low
            if let last = gaps.last, last.before == range.low {
                gaps[gaps.count - 1].before = range.high
            } else {
                gaps.append(.init(after: after.isEmpty ? nil : after, before: range.high))
            }
        }
    }
}
