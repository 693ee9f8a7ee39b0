/// How similar words are.
enum Spelling {
    /// The candidate with the smallest edit distance to `word`; nil if none is similar.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        let found = candidates.map { (name: $0, distance: distance(word, $0)) }
            .min { $0.distance < $1.distance }
        // Two letters may be swapped, or a third of them wrong.
        guard let found, found.distance <= max(2, word.utf8.count / 3) else { return nil }
        return found.name
    }

    /// The question after an error; empty if nothing is similar.
    static func question(_ nearest: String?) -> String {
        nearest.map { "; did you mean '\($0)'?" } ?? ""
    }

    /// The Levenshtein distance of the first 64 bytes.
    private static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.utf8.prefix(64))
        let right = Array(right.utf8.prefix(64))
        var row = Array(0...right.count)
        for (index, byte) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in 0..<right.count {
                let change = diagonal + (byte == right[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(change, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
