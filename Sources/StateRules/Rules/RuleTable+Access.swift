import StateEngine

/// What all rules together say of access.
extension RuleTable {
    /// A line for each action that a rule names: keys, action, and the numbers of whom it means.
    static func accessText(_ rules: [Rule]) -> String {
        var lines: [String] = []
        for rule in rules {
            for action in KeyAction.allCases {
                guard let principals = rule.access[action] else { continue }
                let names = principals.map(\.number).sorted().joined(separator: " ")
                lines.append("\(rule.keys) \(action.rawValue) \(names)")
            }
        }
        return lines.sorted().joined(separator: "\n")
    }
}

extension Principal {
    /// Who it is, by number: a name may come to mean another.
    fileprivate var number: String {
        switch self {
        case .everybody: "*"
        case .owner: "owner"
        case .user(let uid, _): "u\(uid)"
        case .group(let gid, _): "g\(gid)"
        }
    }
}
