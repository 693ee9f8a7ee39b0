import Glibc

/// Where the configuration is that nobody has to name.
enum ConfigurationPlace {
    /// What names another instance, or no instance at all: the usual configuration is none of its.
    private static let exclusions: Set = [
        "--config", "--socket", "--data", "--memory", "--check-config", "--help", "-h", "--version",
        "-V",
    ]

    /// The file of the service manager's directory, of root, or of this user; nil where there is none, or where the options say
    /// that this is not the usual instance.
    static func standard(for names: Set<String>) -> String? {
        guard names.isDisjoint(with: exclusions), let directory else { return nil }
        let path = directory + "/stated.json5"
        // One that cannot be read is no reason to serve without it.
        return access(path, F_OK) == 0 || errno != ENOENT && errno != ENOTDIR ? path : nil
    }

    private static var directory: String? {
        // Several are separated by colons; the first is ours.
        if let given = Environment["CONFIGURATION_DIRECTORY"]?.split(separator: ":").first {
            return String(given)
        }
        if geteuid() == 0 { return "/etc/stated" }
        // A relative path there is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
        if let home = Environment["XDG_CONFIG_HOME"], home.hasPrefix("/") {
            return home + "/stated"
        }
        return Environment["HOME"].map { $0 + "/.config/stated" }
    }
}
