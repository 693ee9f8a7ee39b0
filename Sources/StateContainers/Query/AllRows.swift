import StateEngine

/// The rows of a query, all of them: for an order or a filter each value is needed.
struct AllRows<Value: Codable & Sendable>: Sendable {
    private let query: StateQuery<Value>
    /// The codec of the keyspace: a value that breaks its rules is unreadable.
    private let codec: StateCodec<Value>
    private let ownsObjects: Bool
    private var byKey: [Key: QueryRow<Value>] = [:]
    private var all = QueryRows<Value>()
    /// The sums that were asked for, by what is added.
    private var sums: [PathID: any RunningSum<Value>] = [:]
    /// The keys that have no row because their values cannot be read.
    private(set) var unreadable: [Key: StateError] = [:]

    init(_ query: StateQuery<Value>, _ codec: StateCodec<Value>, ownsObjects: Bool) {
        self.query = query
        self.codec = codec
        self.ownsObjects = ownsObjects
    }

    /// The rows of the offset and limit.
    var rows: QueryRows<Value> { all.window(offset: query.rowOffset, limit: query.rowLimit) }

    /// The sum of a part of all rows, without offset and limit.
    ///
    /// - Complexity: O(*n*) in the rows the first time; then O(1), or for floating-point numbers,
    ///   whose sums would become inexact, O(*n*) again after each change.
    mutating func sum<Number: AdditiveArithmetic & Sendable>(
        _ path: any KeyPath<Value, Number> & Sendable
    ) -> Number {
        let present = sums[PathID(path: path)] as? PartSum<Value, Number>
        var sum = present ?? PartSum(path: path)
        let total = sum.total(of: byKey.values.lazy.map(\.value))
        sums[PathID(path: path)] = sum
        return total
    }

    /// Shows changes; adds what goes to `gone`.
    ///
    /// - Returns: Whether there is something to publish: of a query with a limit or an offset, most
    ///   changes concern other rows.
    /// - Complexity: O(log *n*) comparisons for each change; if there are many, O(*n* log *n*) for
    ///   all of them.
    mutating func take(_ arrived: ArrivedChanges, _ gone: inout [any Sendable]) -> Bool {
        let before = rows
        if arrived.state != nil { restart(&gone) }
        // Sorting all of them is cheaper then.
        let isAnew = arrived.state != nil || arrived.changes.count > max(64, all.count / 8)
        var hasChanged = false
        var isUnreadableNew = false
        func show(_ change: KeyspaceChange) {
            let error = unreadable.isEmpty ? nil : unreadable.removeValue(forKey: change.key)
            let new = row(change, arrived.epoch, &gone)
            if unreadable[change.key] != error { isUnreadableNew = true }
            let old =
                new.map { byKey.updateValue($0, forKey: change.key) }
                ?? byKey.removeValue(forKey: change.key)
            if let old, ownsObjects { gone.append(old) }
            hasChanged = hasChanged || old != nil || new != nil
            for path in sums.keys { sums[path]?.replace(old?.value, with: new?.value) }
            if !isAnew { all.replace(old, with: new, in: query.precedes) }
        }
        for change in arrived.state ?? [] { show(change) }
        for change in arrived.changes.values { show(change) }
        if isAnew { all = QueryRows(sorted: byKey.values.sorted(by: query.precedes)) }
        if arrived.state != nil || isUnreadableNew { return true }
        let isWindow = query.rowOffset > 0 || query.rowLimit < .max
        return hasChanged && !(isWindow && rows.isSame(as: before))
    }

    private mutating func restart(_ gone: inout [any Sendable]) {
        if ownsObjects { gone.append(self) }
        (byKey, unreadable) = ([:], [:])
        all = QueryRows()
        sums = sums.mapValues { $0.restarted }
    }

    /// The row of a change; nil if there is none.
    private mutating func row(
        _ change: KeyspaceChange,
        _ epoch: Epoch,
        _ gone: inout [any Sendable]
    ) -> QueryRow<Value>? {
        guard let bytes = change.value else { return nil }
        do throws(StateError) {
            let value = try codec.decode(bytes)
            let revision = Revision(epoch: epoch, number: change.revision)
            let row = QueryRow(key: change.key, value: value, revision: revision)
            if query.isIncluded(value) { return row }
            if ownsObjects { gone.append(row) }
            return nil
        } catch {
            unreadable[change.key] = error
            return nil
        }
    }
}
