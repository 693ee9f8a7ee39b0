/// First in, first out, in one array that grows to the largest size needed.
///
/// A large array is freed when it runs empty.
///
/// Adding and removing take O(1) on average.
package struct Ring<Element> {
    /// The count is a power of two, or 0.
    @usableFromInline var places: [Element?] = []
    @usableFromInline var first = 0
    @usableFromInline var storedCount = 0
    /// An array of at most this size is kept when it runs empty.
    @usableFromInline static var keptCount: Int { 64 }

    @inlinable
    package init() {}

    @inlinable
    package var count: Int { storedCount }

    @inlinable
    subscript(_ offset: Int) -> Element? {
        get { places[(first + offset) & (places.count - 1)] }
        set { places[(first + offset) & (places.count - 1)] = newValue }
    }

    @inlinable
    package mutating func append(_ element: Element) {
        if count == places.count {
            let elements = (0..<count).map { self[$0] }
            places = elements + Array(repeating: nil, count: max(1, count))
            first = 0
        }
        self[count] = element
        storedCount += 1
    }

    @inlinable
    package mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = places[first].take()
        first = (first + 1) & (places.count - 1)
        storedCount -= 1
        if count == 0, places.count > Self.keptCount { (places, first) = ([], 0) }
        return element
    }

    /// Replaces the last element with the result of `change`.
    ///
    /// - Precondition: The ring is not empty.
    package mutating func replaceLast(_ change: (Element) -> Element) {
        guard count > 0, let last = self[count - 1] else {
            preconditionFailure("the ring is empty")
        }
        self[count - 1] = change(last)
    }
}
