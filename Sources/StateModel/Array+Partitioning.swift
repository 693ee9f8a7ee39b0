extension Array {
    /// The index of the first element for which `body` is true; the end if there is none.
    ///
    /// `body` must be true for all later elements.
    ///
    /// - Complexity: O(log *n*).
    @inlinable
    package func partitioningIndex(where body: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if body(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
