import Glibc
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

/// What a rule may forbid users to do with keys, and the permission bits with which they can do it
/// with the files.
enum FileUse: CaseIterable {
    case read, write, overwrite, replace

    /// Whom a rule allows it; nil if the rule does not say.
    func allowed(by rule: Rule) -> [Principal]? {
        switch self {
        case .read: rule.access[.read]
        case .write: rule.access[.write]
        case .overwrite: rule.isReadOnly.map { $0 ? [] : [.everybody] }
        case .replace: rule.isWriteOnce.map { $0 ? [] : [.everybody] }
        }
    }

    /// Whether a rule does not allow it to everybody.
    func isRestricted(by rule: Rule) -> Bool {
        allowed(by: rule).map { !$0.contains(.everybody) } ?? false
    }

    var verb: String { self == .read ? "read" : "write" }

    /// The bits for the group and for all others.
    fileprivate var bits: (group: UInt32, others: UInt32) {
        self == .read ? (0o040, 0o004) : (0o020, 0o002)
    }
}

/// Users who may use the files of a rule although a rule forbids them to use its keys so.
struct FileExposure {
    let who: String
    let use: FileUse
    let restriction: Rule
}

extension RuleTable {
    /// The form of the files of a rule: if some rule restricts who may read its keys, only the owner
    /// may read the files, unless the rule says something else, and an owner of a former file who may
    /// not read the keys is not kept.
    package func form(of rule: Rule) -> FileForm {
        var form = rule.form
        let restrictions = restrictions(of: .read, on: rule)
        guard !restrictions.isEmpty else { return form }
        form.mode = form.mode ?? 0o600
        form.readers = readers(restrictions)
        return form
    }

    /// The users and groups whom each of some rules lets read all of its keys.
    private func readers(_ restrictions: [Rule]) -> FileReaders {
        let all = restrictions.map { rule in
            var readers = FileReaders(users: [], groups: [])
            for principal in rule.access[.read] ?? [] {
                switch principal {
                case .user(let uid, _): readers.users.insert(uid)
                case .group(let gid, _): readers.groups.insert(gid)
                case .everybody, .owner, .unit: break
                }
            }
            return readers
        }
        return FileReaders(
            users: all.dropFirst().reduce(all[0].users) { $0.intersection($1.users) },
            groups: all.dropFirst().reduce(all[0].groups) { $0.intersection($1.groups) }
        )
    }

    /// A rule that restricts who may read keys of `rule`, whose directory others may write; nil if
    /// there is none.
    func restrictionInShared(_ rule: Rule) -> Rule? {
        guard case .file(_, let isShared) = rule.backing, isShared else { return nil }
        return restrictions(of: .read, on: rule).first
    }

    /// The rules that restrict what may be done with keys of `rule`, except those that `rule` itself
    /// overrides.
    private func restrictions(of use: FileUse, on rule: Rule) -> [Rule] {
        let decides = use.allowed(by: rule) != nil
        return (restricting[use] ?? []).filter { other in
            rule.keys.contains { mine in
                other.keys.contains {
                    !(decides && mine.isMoreSpecific(than: $0)) && mine.meets($0)
                }
            }
        }
    }

    /// Whom `mode` lets use the files of a rule although they may not use its keys so.
    func exposures(of rule: Rule) -> [FileExposure] {
        guard let mode = rule.form.mode, mode & 0o066 != 0 else { return [] }
        return FileUse.allCases.compactMap { use in
            let (group, others) = use.bits
            guard mode & (group | others) != 0 else { return nil }
            for other in restrictions(of: use, on: rule) {
                if mode & others != 0 {
                    return FileExposure(who: "everybody", use: use, restriction: other)
                }
                let isAllowed = (use.allowed(by: other) ?? []).contains {
                    if case .group(let gid, _) = $0 { return gid == rule.form.gid }
                    return false
                }
                if !isAllowed {
                    return FileExposure(who: "their group", use: use, restriction: other)
                }
            }
            return nil
        }
    }

    /// The rule that does not let the owner of the files of a rule use its keys so; nil if none.
    ///
    /// Root and this process's user may do everything.
    func restriction(ofOwnerOf rule: Rule, to use: FileUse) -> Rule? {
        guard let uid = rule.form.uid, uid != 0, uid != geteuid() else { return nil }
        return restrictions(of: use, on: rule).first { other in
            !(use.allowed(by: other) ?? []).contains {
                if case .user(uid, _) = $0 { return true }
                return false
            }
        }
    }
}
