import Glibc
import StateEngine
import StateJSON
import StateRules

/// `--check-config`: what a start with a file would meet.
struct ConfigurationCheck {
    /// The file; `-` is standard input.
    let path: String
    /// The user with whose rights it is checked; nil for the one that the service runs as, if this
    /// is root, else for the own.
    var user: String?
    var refusesWarnings = false

    /// Checks the file, and the directories of its rules.
    ///
    /// Afterwards the process has the rights of that user.
    ///
    /// - Returns: The number of rules.
    /// - Throws: ``StateError/Code/err`` if it cannot be used; `findings` says everything.
    func run(_ findings: ConfigurationFindings) throws(StateError) -> Int {
        let name = user ?? (geteuid() == 0 ? ServiceUnit.user() : nil)
        let unheard = name.flatMap { ConfigurationCheck.takeRights(of: $0) }
        var accounts = AccountDirectory.system()
        accounts.isLenient = true
        var options = Options()
        try options.read(path, accounts: accounts, findings)
        if let unheard { findings.add(warning: unheard) }
        try options.checkPlaces(findings)
        try check(options, findings)
        if refusesWarnings, !findings.warnings.isEmpty {
            throw StateError(.err, "there are warnings, and --all-warnings-are-errors is given")
        }
        return options.configuration.rules.rules.count
    }

    /// Checks the directories of the rules.
    private func check(
        _ options: Options,
        _ findings: ConfigurationFindings
    ) throws(StateError) {
        let rules = options.configuration.rules
        let containers = FileContainers(
            rules.fileRules,
            limits: options.configuration.limits.keyspace,
            notice: { _ in }
        )
        let unusable = containers?.unusable ?? []
        findings.add(
            faults: unusable.prefix(ConfigurationFindings.limit).map { directory, message in
                let rule = rules.rules.first { $0.backing?.directory == directory }
                return rule.map { $0.fault($0.path.member("directory"), message) }
                    ?? OptionFault(JSONPath(), message)
            }
        )
        if let summary = findings.summary { throw StateError(.err, summary) }
        try containers?.check()
    }

    /// Gives this process the rights of a user.
    ///
    /// - Returns: Why it did not, for a warning.
    private static func takeRights(of name: String) -> String? {
        guard let entry = getpwnam(name) else {
            return
                "this machine has no user \"\(name)\"; directories were checked with the rights of "
                + "uid \(geteuid())"
        }
        let (uid, gid) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
        if uid == geteuid() { return nil }
        guard geteuid() == 0, initgroups(name, gid) == 0, setegid(gid) == 0, seteuid(uid) == 0
        else {
            return "only root can check with the rights of \"\(name)\"; directories were checked "
                + "with those of uid \(geteuid())"
        }
        return nil
    }
}

extension KeyBacking {
    /// The directory of the files; nil if there are none.
    fileprivate var directory: String? {
        guard case .file(let directory, _) = self else { return nil }
        return directory
    }
}

/// The unit that systemd starts the daemon by.
enum ServiceUnit {
    private static let places = [
        "/usr/lib/systemd/system", "/lib/systemd/system", "/usr/local/lib/systemd/system",
        "/run/systemd/system", "/etc/systemd/system",
    ]

    /// The user of the unit and its drop-ins.
    ///
    /// - Parameter places: The directories of units, the one that counts most at the end.
    /// - Returns: The name; nil if there is no unit.
    static func user(in places: [String] = places) -> String? {
        let units = places.map { $0 + "/stated.service" }
        guard let unit = units.last(where: { access($0, R_OK) == 0 }) else { return nil }
        let dropIns = places.flatMap { names(in: $0 + "/stated.service.d") }
        return ([unit] + dropIns).reduce(nil) { user($1) ?? $0 }
    }

    private static func names(in directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".conf") { names.append("\(directory)/\(name)") }
        }
        return names.sorted()
    }

    /// The last `User=` of a file.
    private static func user(_ path: String) -> String? {
        guard let bytes = try? ConfigurationFile.bytes(path) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let found = lines.last { $0.hasPrefix("User=") }?.dropFirst(5)
        return found.flatMap { $0.isEmpty ? nil : String($0) }
    }
}
