import StateEngine
import StateJSON

/// Finds the numbers of users and groups.
package struct AccountDirectory: Sendable {
    /// The uid of a user; nil if there is no user of that name.
    package var user: @Sendable (String) -> UInt32?
    /// The gid of a group.
    package var group: @Sendable (String) -> UInt32?
    /// Whether names that are not there are only warned of: the file may be meant for another
    /// machine.
    package var isLenient = false

    package init(
        user: @escaping @Sendable (String) -> UInt32?,
        group: @escaping @Sendable (String) -> UInt32?
    ) {
        (self.user, self.group) = (user, group)
    }
}

extension AccountDirectory {
    /// The gid of a group, which may also be given as a number; nil after a warning.
    func groupNumber(
        _ name: String,
        _ path: JSONPath,
        _ warnings: inout [OptionFault]
    ) throws(OptionFault) -> UInt32? {
        if let number = UInt32(name) ?? group(name) { return number }
        return try absent(OptionFault(path, "this machine has no group \"\(name)\""), &warnings)
    }

    /// The uid of a user, which may also be given as a number; nil after a warning.
    func userNumber(
        _ name: String,
        _ path: JSONPath,
        _ warnings: inout [OptionFault],
        advice: String = ""
    ) throws(OptionFault) -> UInt32? {
        if let number = UInt32(name) ?? user(name) { return number }
        return try absent(
            OptionFault(path, "this machine has no user \"\(name)\"\(advice)"),
            &warnings
        )
    }

    private func absent(
        _ fault: OptionFault,
        _ warnings: inout [OptionFault]
    ) throws(OptionFault) -> UInt32? {
        guard isLenient else { throw fault }
        warnings.append(fault)
        return nil
    }

    /// The principal that an element of an access list names; nil after a warning.
    func principal(
        _ value: JSONValue,
        _ path: JSONPath,
        _ warnings: inout [OptionFault]
    ) throws(OptionFault) -> Principal? {
        let text: String
        switch value {
        case .string(let name): text = name
        case .number(let digits) where UInt32(digits) != nil: text = digits
        default:
            throw OptionFault(
                path,
                "expected a user, \"group:NAME\", \"unit:NAME\", \"owner\" or \"*\" in quotes, or the "
                    + "number of a user, not \(value.kindDescription)"
            )
        }
        if text == "*" { return .everybody }
        if text == "owner" { return .owner }
        if text.hasPrefix("group:") {
            let name = String(text.dropFirst(6))
            return try groupNumber(name, path, &warnings).map { .group($0, name: name) }
        }
        if text.hasPrefix("unit:") {
            let name = String(text.dropFirst(5))
            guard SystemUnit.isName(name) else {
                throw OptionFault(
                    path,
                    "'\(name)' is not the whole name of a unit, such as \"unit:app.service\""
                )
            }
            return .unit(name)
        }
        let advice = "; write \"group:NAME\" for a group, \"*\" for everybody"
        return try userNumber(text, path, &warnings, advice: advice).map { .user($0, name: text) }
    }
}
