import Glibc
import StateEngine
import StateRules
import StateServer

/// A directory that nobody has to name: the service manager's, root's, or this user's.
struct StandardPlace {
    /// The variable in which the service manager says it.
    let managed: String
    let ofRoot: String
    /// The variable of the XDG base directories.
    let variable: String
    /// What it is below $HOME where that is not set.
    let inHome: String

    /// The path; nil if nothing says where.
    var path: String? {
        // Several are separated by colons; the first is ours.
        if let given = Environment[managed]?.split(separator: ":").first { return String(given) }
        if geteuid() == 0 { return ofRoot }
        // A relative path there is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
        if let home = Environment[variable], home.hasPrefix("/") { return home + "/stated" }
        return Environment["HOME"].map { $0 + inHome + "/stated" }
    }
}

/// Where the configuration is that nobody has to name.
enum ConfigurationPlace {
    /// What names another instance, or no instance at all: the usual configuration is none of its.
    private static let exclusions: Set = [
        "--config", "--socket", "--data", "--memory", "--check-config",
    ]

    private static let directory = StandardPlace(
        managed: "CONFIGURATION_DIRECTORY",
        ofRoot: "/etc/stated",
        variable: "XDG_CONFIG_HOME",
        inHome: "/.config"
    )

    /// Nil if there is none, or if the options say that this is not the usual instance.
    static func standard(for names: Set<String>) -> String? {
        guard names.isDisjoint(with: exclusions), let directory = directory.path else { return nil }
        let path = directory + "/stated.json5"
        // One that cannot be read is no reason to serve without it.
        return access(path, F_OK) == 0 || errno != ENOENT && errno != ENOTDIR ? path : nil
    }
}

/// Where the values live.
enum DataDirectory {
    private static let directory = StandardPlace(
        managed: "STATE_DIRECTORY",
        ofRoot: "/var/lib/stated",
        variable: "XDG_STATE_HOME",
        inHome: "/.local/state"
    )

    /// The directory of `options`, else the service manager's, else the user's own; made where it is missing.
    ///
    /// - Throws: ``StateError/Code/err`` where nothing says where, ``StateError/Code/storage`` where it cannot be made.
    static func prepare(_ options: Options) throws(StateError) -> String {
        let directory = try path(options)
        try Directory.make(directory, failingWith: .storage)
        return directory
    }

    /// The same directory, left as it is.
    static func path(_ options: Options) throws(StateError) -> String {
        if let path = options.configuration.dataDirectory ?? directory.path { return path }
        throw StateError(.err, "nothing says where the values live: set HOME, or give --data")
    }
}
