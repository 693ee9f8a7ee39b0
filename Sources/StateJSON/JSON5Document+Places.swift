import StateModel

/// Where things are in the text.
extension JSON5Document {
    /// The place of a member or element; for a missing one, that of the parent.
    ///
    /// - Complexity: O(*n*) in the length of the text.
    package func place(of path: JSONPath) -> Place? { offset(of: path).map(place(at:)) }

    /// The offset of a member or element in the text; for a missing one, that of the parent.
    ///
    /// - Complexity: O(1) for each step of the path; the first call O(*n*) in the members and elements.
    package func offset(of path: JSONPath) -> Int? {
        nodes.isEmpty ? nil : nodes[node(of: path)].offset
    }

    /// Whether a fault at `path` may only follow from one of the faults of the text: something there
    /// could not be read.
    package func isDoubtful(_ path: JSONPath) -> Bool {
        guard !nodes.isEmpty else { return true }
        guard !unfinished.isEmpty || !faulty.isEmpty else { return false }
        var node = node(of: path)
        if unfinished.contains(node) { return true }
        while node > 0, !faulty.contains(node) { node = nodes[node].parent }
        return faulty.contains(node)
    }

    /// The lines of the elements of the array at `path`, in their order.
    ///
    /// - Complexity: O(*n*) in the length of the text.
    package func lines(ofElementsOf path: JSONPath) -> [Int] {
        guard !nodes.isEmpty else { return [] }
        // Once for a file: no index is worth it.
        let array = path.steps.reduce(0) { parent, step in
            nodes.lastIndex { $0.parent == parent && $0.step == step } ?? parent
        }
        var (lines, line, offset) = ([Int](), 1, 0)
        for index in nodes.indices.dropFirst(array + 1) where nodes[index].parent == array {
            while offset < nodes[index].offset { line += takeLineEnd(at: &offset) ? 1 : 0 }
            lines.append(line)
        }
        return lines
    }

    private func node(of path: JSONPath) -> Int {
        var node = 0
        for step in path.steps {
            guard let found = children.node(at: step, of: node, in: nodes) else { break }
            node = found
        }
        return node
    }

    func path(of node: Int) -> JSONPath {
        guard let step = nodes[node].step else { return JSONPath() }
        return path(of: nodes[node].parent).appending(step)
    }

    func place(at offset: Int) -> Place {
        var (line, start, index) = (1, firstOffset, 0)
        while index < offset {
            if takeLineEnd(at: &index) { (line, start) = (line + 1, index) }
        }
        let column = text[min(start, offset)..<offset].count { $0 & 0xC0 != 0x80 }
        return Place(line: line, column: column + 1)
    }

    /// Goes over one byte or one end of a line.
    ///
    /// - Returns: Whether a line has ended.
    private func takeLineEnd(at index: inout Int) -> Bool {
        defer { index += 1 }
        switch text[index] {
        case 0x0A: return true
        case 0x0D:
            if index + 1 < text.count, text[index + 1] == 0x0A { index += 1 }
            return true
        case 0xE2 where lineEndLength(at: index) > 0:
            index += 2
            return true
        default: return false
        }
    }

    /// The length of the end of a line at `offset`, without the second half of CR LF; 0 if there is
    /// none.
    func lineEndLength(at offset: Int) -> Int {
        switch text[offset] {
        case 0x0A, 0x0D: return 1
        // U+2028 and U+2029.
        case 0xE2:
            guard offset + 2 < text.count, text[offset + 1] == 0x80 else { return 0 }
            return text[offset + 2] & 0xFE == 0xA8 ? 3 : 0
        default: return 0
        }
    }

    /// The offset of the next end of a line.
    func endOfLine(from offset: Int) -> Int {
        var index = offset
        while index < text.count, lineEndLength(at: index) == 0 { index += 1 }
        return index
    }

    // MARK: Excerpts

    /// How many code points of a long line are shown on each side of the place.
    private static let shownCount = 60

    /// The line of a place, and a line with a caret below its column; of a long line, what is near.
    ///
    /// A tab is shown as a space, and what would move the cursor or change the direction of writing
    /// as U+FFFD.
    package func excerpt(of place: Place) -> (line: String, caret: String) {
        var (line, start) = (1, 0)
        while line < place.line, start < text.count { line += takeLineEnd(at: &start) ? 1 : 0 }
        if start == 0 { start = firstOffset }
        let scalars = Array(
            String(decoding: text[start..<endOfLine(from: start)], as: UTF8.self).unicodeScalars
        )
        let column = min(place.column - 1, scalars.count)
        let first = max(0, column - JSON5Document.shownCount)
        let last = min(scalars.count, column + JSON5Document.shownCount)
        var (shown, caret) = (String.UnicodeScalarView(), String.UnicodeScalarView())
        for index in first..<last {
            let scalar = scalars[index]
            shown.append(scalar == "\t" ? " " : scalar.misleads ? "\u{FFFD}" : scalar)
            if index < column { caret.append(" ") }
        }
        caret.append("^")
        let (before, after) = (first > 0 ? "…" : "", last < scalars.count ? "…" : "")
        return (before + String(shown) + after, (first > 0 ? " " : "") + String(caret))
    }
}

/// Finds members and elements by their parents; made when the first one is looked for.
///
/// An appliance may have 50,000 rules with a warning each.
final class ChildNodes {
    private struct Child: Hashable {
        let parent: Int
        let step: JSONPath.Step
    }

    private var numbers: [Child: Int] = [:]

    /// The number of the child; of several with the same name, that of the last; nil without one.
    ///
    /// All calls have the same nodes.
    func node(at step: JSONPath.Step, of parent: Int, in nodes: [JSON5Document.Node]) -> Int? {
        if numbers.isEmpty {
            numbers.reserveCapacity(nodes.count)
            for (number, node) in nodes.enumerated() {
                if let step = node.step { numbers[Child(parent: node.parent, step: step)] = number }
            }
        }
        return numbers[Child(parent: parent, step: step)]
    }
}
