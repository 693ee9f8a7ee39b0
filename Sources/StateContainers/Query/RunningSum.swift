/// A sum over the rows of a query, which follows their changes.
protocol RunningSum<Value>: Sendable {
    associatedtype Value

    /// The same sum, of no rows yet.
    var restarted: Self { get }

    /// Follows the change of one row; nil where there is no row.
    mutating func replace(_ old: Value?, with new: Value?)
}

/// The sum of one part of all rows.
struct PartSum<Value: Sendable, Number: AdditiveArithmetic & Sendable>: RunningSum {
    private let path: any KeyPath<Value, Number> & Sendable
    /// Nil until it is computed.
    private var sum: Number?

    init(path: any KeyPath<Value, Number> & Sendable) { self.path = path }

    var restarted: PartSum { PartSum(path: path) }

    mutating func replace(_ old: Value?, with new: Value?) {
        guard let sum else { return }
        // Numbers that are rounded do not come back to what they were.
        guard !(Number.self is any FloatingPoint.Type) else {
            self.sum = nil
            return
        }
        let without = old.map { sum - $0[keyPath: path] } ?? sum
        self.sum = new.map { without + $0[keyPath: path] } ?? without
    }

    /// The sum; computed of `values` if it is not known.
    mutating func total(of values: some Sequence<Value>) -> Number {
        let total = sum ?? values.reduce(.zero) { $0 + $1[keyPath: path] }
        sum = total
        return total
    }
}
