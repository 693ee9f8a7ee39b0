package import StateEngine
import StateJSON

/// What the files of a rule look like.
extension Rule {
    /// Reads `mode`, `owner`, `group` and `trim`.
    mutating func readForm(
        _ reader: inout OptionReader,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        form.mode = try reader.string("mode") { text, path throws(OptionFault) in
            if let mode = Configuration.socketMode(text) { return mode }
            throw OptionFault(
                path,
                "expected octal permission bits in quotes, such as \"0640\", with which the owner can "
                    + "read and write, not \"\(text)\""
            )
        }
        form.uid =
            try reader.string("owner") { name, path throws(OptionFault) in
                try accounts.userNumber(name, path, &warnings)
            } ?? nil
        form.gid =
            try reader.string("group") { name, path throws(OptionFault) in
                try accounts.groupNumber(name, path, &warnings)
            } ?? nil
        form.trims = try reader.bool("trim") ?? false
        guard source["backing"] != .string("file") else { return }
        for name in ["mode", "owner", "group", "trim"] where reader.has(name) {
            reader.note(name, "it needs backing: \"file\" in the same rule")
        }
    }
}

extension RuleTable {
    /// The form of the files of a rule: if some rule restricts who may read its keys, only the owner
    /// may read the files, unless the rule says something else.
    package func form(of rule: Rule) -> FileForm {
        var form = rule.form
        if form.mode == nil, !restrictions(of: rule).isEmpty { form.mode = 0o600 }
        return form
    }

    /// The rules that restrict who may read keys of `rule`.
    func restrictions(of rule: Rule) -> [Rule] {
        readRules.filter { other in
            rule.keys.contains { mine in other.keys.contains { mine.mayMeet($0) } }
        }
    }

    /// Why users may read the files of a rule although a rule forbids them to read its keys; nil if
    /// none may.
    func exposure(of rule: Rule) -> (restriction: Rule, who: String)? {
        guard let mode = rule.form.mode, mode & 0o044 != 0 else { return nil }
        for other in restrictions(of: rule) {
            if mode & 0o004 != 0 { return (other, "everybody") }
            let groups = (other.access[.read] ?? []).compactMap { principal -> UInt32? in
                if case .group(let gid, _) = principal { return gid }
                return nil
            }
            guard let gid = rule.form.gid, groups.contains(gid) else {
                return (other, "their group")
            }
        }
        return nil
    }
}
