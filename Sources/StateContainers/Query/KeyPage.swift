import StateEngine

/// The rows of a query that is a page of the keys: the only ones that are decoded and kept.
struct KeyPage<Value: Codable & Sendable>: ShownRows {
    private let query: StateQuery<Value>
    private let codec: StateCodec<Value>
    private let ownsObjects: Bool
    /// Reads the entries of a keyspace in this process; nil: they are in `delivered`.
    private let watch: LocalWatch?
    private var delivered = QueryRows<[UInt8]>()
    private(set) var rows = QueryRows<Value>()
    private(set) var unreadable: [Key: StateError] = [:]

    init(
        _ query: StateQuery<Value>,
        _ codec: StateCodec<Value>,
        in watch: LocalWatch?,
        ownsObjects: Bool
    ) {
        self.query = query
        self.codec = codec
        self.watch = watch
        self.ownsObjects = ownsObjects
    }

    /// - Complexity: O(offset + limit) in this process; else O(limit), and O(log *n*) for each change.
    mutating func take(_ arrived: ArrivedChanges, _ gone: inout [any Sendable]) -> Bool {
        if watch == nil { deliver(arrived) }
        let (entryCount, entries) = entries(offset: query.rowOffset, limit: query.rowLimit)
        var (rows, unreadable): ([QueryRow<Value>], [Key: StateError]) = ([], [:])
        var known = self.rows.makeIterator()
        var row = known.next()
        for entry in entries {
            while let before = row, before.key < entry.key { row = known.next() }
            if let row, row.key == entry.key, row.revision == entry.revision {
                rows.append(row)
                continue
            }
            do throws(StateError) {
                let value = try codec.decode(entry.value)
                rows.append(QueryRow(key: entry.key, value: value, revision: entry.revision))
            } catch {
                unreadable[entry.key] = error
            }
        }
        let new = QueryRows(
            page: rows,
            offset: query.rowOffset,
            limit: query.rowLimit,
            of: entryCount
        )
        let isNews = unreadable != self.unreadable || !new.isSame(as: self.rows)
        if ownsObjects { gone.append(self.rows) }
        (self.rows, self.unreadable) = (new, unreadable)
        return isNews
    }

    /// Decodes it if it is not on the page.
    func row(for key: Key) -> QueryRow<Value>? {
        if let row = rows.row(for: key) { return row }
        let found =
            watch.map { $0.entry(for: key).flatMap { Self.entry($0.change, $0.epoch) } }
            ?? delivered.row(for: key)
        guard let entry = found, let value = try? codec.decode(entry.value) else { return nil }
        return QueryRow(key: key, value: value, revision: entry.revision)
    }

    /// - Complexity: O(*n*) in all entries: only those on the page are kept.
    mutating func sum<Number: AdditiveArithmetic & Sendable>(
        _ path: any KeyPath<Value, Number> & Sendable,
        _ gone: inout [any Sendable]
    ) -> Number {
        var sum = Number.zero
        for entry in entries(offset: 0, limit: .max).entries {
            guard let value = try? codec.decode(entry.value) else { continue }
            sum += value[keyPath: path]
            if ownsObjects { gone.append(value) }
        }
        return sum
    }

    // MARK: Entries

    private func entries(
        offset: Int,
        limit: Int
    ) -> (entryCount: Int, entries: [QueryRow<[UInt8]>]) {
        guard let watch else {
            return (delivered.count, Array(delivered.window(offset: offset, limit: limit)))
        }
        let page = watch.page(offset: offset, limit: limit)
        return (page.entryCount, page.entries.compactMap { Self.entry($0, page.epoch) })
    }

    /// Takes the bytes of entries that this process does not have otherwise.
    private mutating func deliver(_ arrived: ArrivedChanges) {
        if let state = arrived.state {
            let entries = state.compactMap { Self.entry($0, arrived.epoch) }
            delivered = QueryRows(sorted: entries.sorted { $0.key < $1.key })
        }
        for (key, change) in arrived.changes {
            let new = Self.entry(change, arrived.epoch)
            delivered.replace(delivered.row(for: key), with: new) { $0.key < $1.key }
        }
    }

    /// The bytes of an entry as a row; nil if it was deleted.
    private static func entry(_ change: KeyspaceChange, _ epoch: Epoch) -> QueryRow<[UInt8]>? {
        let revision = Revision(epoch: epoch, number: change.revision)
        return change.value.map { QueryRow(key: change.key, value: $0, revision: revision) }
    }
}
