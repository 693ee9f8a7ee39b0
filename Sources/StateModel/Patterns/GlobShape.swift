/// A pattern as a list of elements, to find out whether a key can match two of them.
package struct GlobShape: Sendable {
    fileprivate enum Element: Sendable {
        case byte(UInt8)
        case any
        case oneOf(GlobClass)
        case star
    }

    private var elements: [Element] = []

    /// How many bytes, classes and stars it has.
    package var elementCount: Int { elements.count }

    /// The bytes behind the last metacharacter, with which all matching keys end.
    package private(set) var tail: [UInt8] = []

    /// - Complexity: O(*n*) in the bytes of the pattern.
    package init(_ pattern: Pattern) {
        guard pattern.kind == .glob else {
            elements = pattern.literal.map { .byte($0) }
            if pattern.kind == .prefix { elements.append(.star) } else { tail = pattern.literal }
            return
        }
        pattern.bytes.withUnsafeBytes { bytes in
            var index = 0
            while index < bytes.count {
                switch bytes[index] {
                case UInt8(ascii: "*"):
                    if case .star? = elements.last { break }
                    elements.append(.star)
                case UInt8(ascii: "?"): elements.append(.any)
                case UInt8(ascii: "["):
                    let found = GlobClass(bytes, after: index)
                    elements.append(.oneOf(found))
                    index = found.end - 1
                case UInt8(ascii: "\\") where index + 1 < bytes.count:
                    index += 1
                    elements.append(.byte(bytes[index]))
                default: elements.append(.byte(bytes[index]))
                }
                index += 1
            }
        }
        for case .byte(let byte) in elements.reversed().prefix(while: { $0.isByte }) {
            tail.append(byte)
        }
        tail.reverse()
    }

    /// Whether some text matches both; the rules of keys are not regarded.
    ///
    /// - Complexity: O(*n* · *m*) in the elements of both.
    package func meets(_ other: GlobShape) -> Bool {
        let (mine, theirs) = (elements, other.elements)
        // Whether the first elements of both, up to here, match a text together.
        var row = [Bool](repeating: false, count: theirs.count + 1)
        var next = row
        for place in 0...mine.count {
            for column in next.indices { next[column] = false }
            for column in 0...theirs.count {
                if place == 0, column == 0 {
                    next[0] = true
                    continue
                }
                let isMyStar = place > 0 && mine[place - 1].isStar
                let isTheirStar = column > 0 && theirs[column - 1].isStar
                // A star matches nothing, or whatever the other has matched in addition.
                if isMyStar || isTheirStar {
                    next[column] = place > 0 && row[column] && (isMyStar || isTheirStar)
                    next[column] = next[column] || column > 0 && next[column - 1]
                    continue
                }
                guard place > 0, column > 0, row[column - 1] else { continue }
                next[column] = mine[place - 1].meets(theirs[column - 1])
            }
            swap(&row, &next)
            guard row.contains(true) else { return false }
        }
        return row[theirs.count]
    }
}

extension GlobShape.Element {
    fileprivate var isByte: Bool {
        if case .byte = self { return true }
        return false
    }

    fileprivate var isStar: Bool {
        if case .star = self { return true }
        return false
    }

    /// Whether a byte matches both; neither is a star.
    fileprivate func meets(_ other: Self) -> Bool {
        switch (self, other) {
        case (.any, .oneOf(let bytes)), (.oneOf(let bytes), .any):
            (0...UInt8.max).contains(where: bytes.contains)
        case (.any, _), (_, .any): true
        case (.byte(let mine), .byte(let theirs)): mine == theirs
        case (.byte(let byte), .oneOf(let bytes)), (.oneOf(let bytes), .byte(let byte)):
            bytes.contains(byte)
        case (.oneOf(let mine), .oneOf(let theirs)):
            (0...UInt8.max).contains { mine.contains($0) && theirs.contains($0) }
        default: true
        }
    }
}
