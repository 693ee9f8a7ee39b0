package import StateContainers

/// Where in a configuration an option stands: `rules[2].schema.minimum`.
package struct OptionPath: Hashable, Sendable, CustomStringConvertible {
    /// A step to a member or to an element, counted from 0.
    package enum Step: Hashable, Sendable {
        case member(String)
        case element(Int)
    }

    package private(set) var steps: [Step] = []

    package init() {}

    package func member(_ name: String) -> OptionPath { appending(.member(name)) }

    package func element(_ index: Int) -> OptionPath { appending(.element(index)) }

    /// What it stands in; nil for the whole.
    package var parent: OptionPath? {
        guard !steps.isEmpty else { return nil }
        var path = self
        path.steps.removeLast()
        return path
    }

    private func appending(_ step: Step) -> OptionPath {
        var path = self
        path.steps.append(step)
        return path
    }

    /// As JavaScript would reach it.
    package var description: String {
        steps.reduce(into: "") { text, step in
            switch step {
            case .element(let index): text += "[\(index)]"
            case .member(let name) where OptionPath.isWord(name):
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

/// Why a configuration cannot be used.
package struct OptionFault: Error, Hashable, CustomStringConvertible {
    package let path: OptionPath
    /// What was read and what may stand there.
    package let message: String

    package init(_ path: OptionPath, _ message: String) {
        self.path = path
        self.message = message
    }

    package var description: String {
        path.steps.isEmpty ? message : "\(path): \(message)"
    }
}

extension JSONValue {
    /// What it is, for the message of a fault.
    package var kindDescription: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .number(let digits): digits
        case .string(let text): "\"\(text.count > 64 ? "\(text.prefix(64))…" : text)\""
        case .array: "an array"
        case .object: "an object"
        }
    }
}
