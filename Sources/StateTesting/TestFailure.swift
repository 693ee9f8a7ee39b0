/// A difference between what a test expected and what happened.
public struct TestFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence; if two values differ, followed by the lines of both: `-` expected, `+` actual.
    public let description: String

    init(_ description: String) { self.description = description }

    init(_ sentence: String, expected: Any, actual: Any) {
        let (old, new) = (lines(of: expected), lines(of: actual))
        let difference = new.difference(from: old)
        var removed: Set<Int> = []
        var inserted: Set<Int> = []
        for change in difference {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        var shown: [String] = []
        var place = 0
        for (offset, line) in old.enumerated() {
            if removed.contains(offset) {
                shown.append("- \(line)")
                continue
            }
            while inserted.contains(place) {
                shown.append("+ \(new[place])")
                place += 1
            }
            shown.append("  \(line)")
            place += 1
        }
        shown += new[place...].map { "+ \($0)" }
        description = ([sentence + ": (- expected, + actual)"] + shown).joined(separator: "\n")
    }
}

/// The lines of a value: one for each field of a structure and each element of a collection, 8
/// levels deep.
private func lines(of value: Any, name: String = "", depth: Int = 0) -> [String] {
    let mirror = Mirror(reflecting: value)
    let indent = String(repeating: "  ", count: depth)
    let label = name.isEmpty ? "" : "\(name): "
    let isOpen =
        switch mirror.displayStyle {
        case .struct, .class, .collection, .dictionary, .tuple: !mirror.children.isEmpty
        default: false
        }
    guard isOpen, depth < 8 else { return [indent + label + String(reflecting: value)] }
    let children = mirror.children.flatMap { child in
        lines(of: child.value, name: child.label ?? "", depth: depth + 1)
    }
    return [indent + label + "\(type(of: value)) ("] + children + [indent + ")"]
}
