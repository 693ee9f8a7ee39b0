public import StateEngine

/// Entries of a keyspace as values, in an order: declared once, run on any keyspace.
///
/// ```swift
/// static let all = StateQuery("budget/", as: Budget.self).sorted(by: \.dateCreated, .reverse)
/// let budgets = try keyspace.query(Budget.all)
/// ```
public struct StateQuery<Value: Codable & Sendable>: Sendable {
    /// Which way an order goes.
    public enum Direction: Hashable, Sendable {
        /// The smallest first.
        case forward
        /// The largest first.
        case reverse
    }

    /// Which keys.
    public let pattern: Pattern
    let codec: StateCodec<Value>
    private(set) var isIncluded: @Sendable (Value) -> Bool = { _ in true }
    /// Each says whether one comes before another; the first that tells them apart decides, and last the keys.
    private(set) var orders: [@Sendable (Value, Value) -> Bool] = []

    /// All entries that `pattern` means, in the order of their keys.
    public init(
        _ pattern: Pattern,
        as type: Value.Type = Value.self,
        codec: StateCodec<Value> = .standard
    ) {
        self.pattern = pattern
        self.codec = codec
    }

    /// In the order of a field; those of equal fields in the order that was asked for before, last in that of their keys.
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

    /// Only the values of which `isIncluded` says yes; it only computes.
    public func filtered(_ isIncluded: @escaping @Sendable (Value) -> Bool) -> StateQuery {
        var query = self
        let before = self.isIncluded
        query.isIncluded = { before($0) && isIncluded($0) }
        return query
    }

    /// Whether `left` comes before `right`.
    func precedes(_ left: QueryRow<Value>, _ right: QueryRow<Value>) -> Bool {
        for order in orders {
            if order(left.value, right.value) { return true }
            if order(right.value, left.value) { return false }
        }
        return left.key < right.key
    }
}

/// One entry that a query found.
public struct QueryRow<Value: Sendable>: Sendable, Identifiable {
    /// Its key.
    public let key: Key
    /// Its value.
    public let value: Value
    /// The commit that last modified it.
    public let revision: Revision

    /// Its key.
    public var id: Key { key }
}

extension QueryRow: Equatable where Value: Equatable {}
