import StateEngine

/// A text of the access rules, to notice a change of them.
extension RuleTable {
    /// A line for each action of a rule: keys, action, and the numbers of its principals.
    static func accessText(_ rules: [Rule]) -> String {
        var lines: [String] = []
        for rule in rules {
            for action in KeyAction.allCases {
                guard let principals = rule.access[action] else { continue }
                let names = principals.map(\.number).sorted().joined(separator: " ")
                for keys in rule.keys { lines.append("\(keys) \(action.rawValue) \(names)") }
            }
        }
        return lines.sorted().joined(separator: "\n")
    }
}

extension Principal {
    /// Its number: a name may later belong to another user.
    fileprivate var number: String {
        switch self {
        case .everybody: "*"
        case .owner: "owner"
        case .user(let uid, _): "u\(uid)"
        case .group(let gid, _): "g\(gid)"
        case .unit(let name): "unit:\(name)"
        }
    }
}
