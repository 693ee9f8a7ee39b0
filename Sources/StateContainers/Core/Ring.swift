/// First in, first out, in one array that grows to what was needed at most at once; a large one is freed when it runs empty.
///
/// Adding and removing cost O(1) on average.
package struct Ring<Element> {
    /// A power of two of them, or none.
    private var places: [Element?] = []
    private var first = 0
    package private(set) var count = 0
    /// As many places are kept without elements.
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

    /// Puts what `change` makes of the last element in its place; there must be one.
    package mutating func replaceLast(_ change: (Element) -> Element) {
        guard count > 0, let last = self[count - 1] else {
            preconditionFailure("a ring without elements has no last one")
        }
        self[count - 1] = change(last)
    }
}
