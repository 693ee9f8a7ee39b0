import StateEngine

/// What a query shows, and how it follows the changes of the entries.
///
/// What goes is added to `gone`, and released after the lock of the caller: the `deinit` of an object
/// in a value may use the query.
protocol ShownRows<Value>: Sendable {
    associatedtype Value: Sendable

    /// The rows of the offset and limit.
    var rows: QueryRows<Value> { get }
    /// The keys that have no row because their values cannot be read.
    var unreadable: [Key: StateError] { get }

    /// The row of a key, wherever offset and limit are; nil if the query has none.
    func row(for key: Key) -> QueryRow<Value>?

    /// Shows changes.
    ///
    /// - Returns: Whether there is something to publish.
    mutating func take(_ arrived: ArrivedChanges, _ gone: inout [any Sendable]) -> Bool

    /// The sum of a part of all rows, without offset and limit.
    mutating func sum<Number: AdditiveArithmetic & Sendable>(
        _ path: any KeyPath<Value, Number> & Sendable,
        _ gone: inout [any Sendable]
    ) -> Number
}

/// The rows of a query, all of them: for an order or a filter each value is needed.
struct AllRows<Value: Codable & Sendable>: ShownRows {
    private let query: StateQuery<Value>
    /// The codec of the keyspace: a value that breaks its rules is unreadable.
    private let codec: StateCodec<Value>
    private let ownsObjects: Bool
    private var byKey: [Key: QueryRow<Value>] = [:]
    private var all = QueryRows<Value>()
    /// The sums that were asked for, by what is added.
    private var sums: [PathID: any RunningSum<Value>] = [:]
    private(set) var unreadable: [Key: StateError] = [:]

    init(_ query: StateQuery<Value>, _ codec: StateCodec<Value>, ownsObjects: Bool) {
        self.query = query
        self.codec = codec
        self.ownsObjects = ownsObjects
    }

    var rows: QueryRows<Value> { all.window(offset: query.rowOffset, limit: query.rowLimit) }

    func row(for key: Key) -> QueryRow<Value>? { byKey[key] }

    /// - Complexity: O(*n*) in the rows the first time; then O(1), or for floating-point numbers,
    ///   whose sums would become inexact, O(*n*) again after each change.
    mutating func sum<Number: AdditiveArithmetic & Sendable>(
        _ path: any KeyPath<Value, Number> & Sendable,
        _ gone: inout [any Sendable]
    ) -> Number {
        let present = sums[PathID(path: path)] as? PartSum<Value, Number>
        var sum = present ?? PartSum(path: path)
        let total = sum.total(of: byKey.values.lazy.map(\.value))
        sums[PathID(path: path)] = sum
        return total
    }

    /// Of a query with a limit or an offset, most changes concern other rows, which are not
    /// published.
    ///
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
        if isAnew { sort(arrived.changes.isEmpty ? arrived.state : nil) }
        if arrived.state != nil || isUnreadableNew { return true }
        let isWindow = query.rowOffset > 0 || query.rowLimit < .max
        return hasChanged && !(isWindow && rows.isSame(as: before))
    }

    /// Puts all rows in order; `state` is what they were made of, if that is all.
    private mutating func sort(_ state: [KeyspaceChange]?) {
        // Most keyspaces deliver a state in the order of keys, which is sorted in one pass.
        let rows = state.map { $0.compactMap { byKey[$0.key] } } ?? Array(byKey.values)
        all = QueryRows(sorted: rows.sorted(by: query.precedes))
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
            if query.isIncluded?(value) ?? true { return row }
            if ownsObjects { gone.append(row) }
            return nil
        } catch {
            unreadable[change.key] = error
            return nil
        }
    }
}
