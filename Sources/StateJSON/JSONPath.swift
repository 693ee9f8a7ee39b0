/// The location of a value in a JSON text: `rules[2].schema.minimum`.
package struct JSONPath: Hashable, Sendable, CustomStringConvertible {
    /// A step to a member or to an element, counted from 0.
    package enum Step: Hashable, Sendable {
        case member(String)
        case element(Int)
    }

    package private(set) var steps: [Step] = []

    package init() {}

    package func member(_ name: String) -> JSONPath { appending(.member(name)) }

    package func element(_ index: Int) -> JSONPath { appending(.element(index)) }

    func appending(_ step: Step) -> JSONPath {
        var path = self
        path.steps.append(step)
        return path
    }

    /// In the syntax of JavaScript, but elements are counted from 1, as messages count rules.
    package var description: String { description(countingFrom: 1) }

    /// The same; the first array that it goes through is counted from `first`.
    package func description(countingFrom first: Int) -> String {
        var start = first
        return steps.reduce(into: "") { text, step in
            switch step {
            case .element(let index):
                text += "[\(index + start)]"
                start = 1
            case .member(let name) where JSONPath.isWord(name):
                text += text.isEmpty ? name : ".\(name)"
            case .member(let name): text += "[\"\(name)\"]"
            }
        }
    }

    private static func isWord(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy {
                $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z")
                    || $0 == UInt8(ascii: "_")
                    || $0 &- 0x30 < 10
            }
    }
}
