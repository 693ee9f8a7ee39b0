/// How similar words are.
enum Spelling {
    /// The candidate with the smallest edit distance to `word`; candidates are not empty.
    static func nearest(to word: String, among candidates: [String]) -> String {
        candidates.min { distance(word, $0) < distance(word, $1) } ?? word
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
