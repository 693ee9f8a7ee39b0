/// Objects, each once, in an array for fast iteration; insertion and removal take constant time.
struct IdentitySet<Element: AnyObject> {
    /// In no order.
    private(set) var all: [Element] = []
    private var places: [ObjectIdentifier: Int] = [:]

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    mutating func insert(_ element: Element) {
        guard places[ObjectIdentifier(element)] == nil else { return }
        places[ObjectIdentifier(element)] = all.count
        all.append(element)
    }

    /// - Returns: Whether it was there.
    @discardableResult
    mutating func remove(_ element: Element) -> Bool {
        guard let place = places.removeValue(forKey: ObjectIdentifier(element)) else {
            return false
        }
        let last = all.removeLast()
        if place < all.count {
            all[place] = last
            places[ObjectIdentifier(last)] = place
        }
        return true
    }
}

extension IdentitySet: Sendable where Element: Sendable {}
