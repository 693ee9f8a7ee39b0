/// First in, first out, in one array that grows to the largest size needed.
///
/// A large array is freed when it runs empty.
///
/// Adding and removing take O(1) on average.
package struct Ring<Element> {
    /// The count is a power of two, or 0.
    private var places: [Element?] = []
    private var first = 0
    package private(set) var count = 0
    /// An array of at most this size is kept when it runs empty.
    private static var keptCount: Int { 64 }

    package init() {}

    private subscript(_ offset: Int) -> Element? {
        get { places[(first + offset) & (places.count - 1)] }
        set { places[(first + offset) & (places.count - 1)] = newValue }
    }

    package mutating func append(_ element: Element) {
        if count == places.count {
            let elements = (0..<count).map { self[$0] }
            places = elements + Array(repeating: nil, count: max(1, count))
            first = 0
        }
        self[count] = element
        count += 1
    }

    package mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = places[first].take()
        first = (first + 1) & (places.count - 1)
        count -= 1
        if count == 0, places.count > Self.keptCount { (places, first) = ([], 0) }
        return element
    }

    /// Replaces the last element with the result of `change`.
    ///
    /// - Precondition: The ring is not empty.
    /// - Returns: The element that was replaced.
    package mutating func replaceLast(_ change: (Element) -> Element) -> Element {
        guard count > 0, let last = self[count - 1] else {
            preconditionFailure("the ring is empty")
        }
        self[count - 1] = change(last)
        return last
    }
}
