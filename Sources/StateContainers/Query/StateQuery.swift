public import StateEngine

/// Entries of a keyspace as values, in an order: declared once, run on any keyspace.
///
/// ```swift
/// static let all = StateQuery("budget/", as: Budget.self).sorted(by: \.dateCreated, .reverse)
/// let budgets = try keyspace.query(Budget.all)
/// ```
public struct StateQuery<Value: Codable & Sendable>: Sendable {
    /// The direction of an order.
    public enum Direction: Hashable, Sendable {
        /// The smallest first.
        case forward
        /// The largest first.
        case reverse
    }

    /// The keys to include.
    public let pattern: Pattern
    let codec: StateCodec<Value>
    /// Nil includes all values.
    private(set) var isIncluded: (@Sendable (Value) -> Bool)?
    /// Each says whether one value comes before another; the first that decides counts, and last
    /// the keys.
    private(set) var orders: [@Sendable (Value, Value) -> Bool] = []
    /// How many rows, in the order, come before the first.
    public private(set) var rowOffset = 0
    /// How many rows there are at most.
    public private(set) var rowLimit = Int.max

    /// Includes all entries that match `pattern`, in the order of their keys.
    public init(
        _ pattern: Pattern,
        as type: Value.Type = Value.self,
        codec: StateCodec<Value> = .standard
    ) {
        self.pattern = pattern
        self.codec = codec
    }

    /// Sorts by a field; equal fields keep the order requested before, or finally that of their
    /// keys.
    public func sorted<Field: Comparable & Sendable>(
        by field: any KeyPath<Value, Field> & Sendable,
        _ direction: Direction = .forward
    ) -> StateQuery {
        var query = self
        query.orders.insert(
            { left, right in
                direction == .forward
                    ? left[keyPath: field] < right[keyPath: field]
                    : left[keyPath: field] > right[keyPath: field]
            },
            at: 0
        )
        return query
    }

    /// Includes only values for which `isIncluded` returns true; it must have no side effects.
    public func filtered(_ isIncluded: @escaping @Sendable (Value) -> Bool) -> StateQuery {
        var query = self
        if let before = self.isIncluded {
            query.isIncluded = { before($0) && isIncluded($0) }
        } else {
            query.isIncluded = isIncluded
        }
        return query
    }

    /// Includes at most this many rows, the first ones in the order.
    ///
    /// In the order of keys and without a filter, the query is a page of the keys: it reads and keeps
    /// only the values that it shows, however many entries match. Offset, limit and count are then
    /// those of entries, whose values nobody has read. So an unreadable value on the page leaves it one
    /// row short, and ``LiveQuery/unreadable`` has only the keys on the page.
    ///
    /// With an order or a filter, all values are read, and all that the filter includes are kept.
    ///
    /// - Precondition: `count` is at least 0.
    public func limit(_ count: Int) -> StateQuery {
        guard count >= 0 else { fatalError("a query cannot have \(count) rows at most") }
        var query = self
        query.rowLimit = count
        return query
    }

    /// Leaves out this many rows, the first ones in the order; a ``limit(_:)`` counts from there.
    ///
    /// - Precondition: `count` is at least 0.
    public func offset(_ count: Int) -> StateQuery {
        guard count >= 0 else { fatalError("a query cannot leave out \(count) rows") }
        var query = self
        query.rowOffset = count
        return query
    }

    /// The rows in sections of those whose field is equal, sorted by it first.
    ///
    /// - Parameters:
    ///   - field: The field.
    ///   - direction: The order of the sections.
    /// - Returns: The query, to be run on a keyspace.
    public func sectioned<Section: Comparable & Hashable & Sendable>(
        by field: any KeyPath<Value, Section> & Sendable,
        _ direction: Direction = .forward
    ) -> SectionedQuery<Value, Section> {
        SectionedQuery(rows: sorted(by: field, direction), field: field)
    }

    /// Whether the rows are a page of the keys, so that no other value decides which ones they are.
    var isPage: Bool { orders.isEmpty && isIncluded == nil && rowLimit < .max }

    /// Whether `left` comes before `right`.
    func precedes(_ left: QueryRow<Value>, _ right: QueryRow<Value>) -> Bool {
        for order in orders {
            if order(left.value, right.value) { return true }
            if order(right.value, left.value) { return false }
        }
        return left.key < right.key
    }
}

/// One entry in the results of a query.
public struct QueryRow<Value: Sendable>: Sendable, Identifiable {
    /// Its key.
    public let key: Key
    /// Its value.
    public let value: Value
    /// The revision of the commit that last modified it.
    public let revision: Revision

    /// Its key.
    public var id: Key { key }
}

extension QueryRow: Equatable where Value: Equatable {}
