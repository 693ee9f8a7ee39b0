import Glibc
import StateEngine
import StateRules
import StateServer

/// A default directory: the service manager's, root's, or this user's.
struct StandardPlace {
    /// The variable in which the service manager passes it.
    let managed: String
    let ofRoot: String
    /// The variable of the XDG base directories.
    let variable: String
    /// Its path below $HOME if that variable is not set.
    let inHome: String

    /// The path; nil if none is known.
    var path: String? {
        // Colons separate several; the first is used.
        if let given = Environment[managed]?.split(separator: ":").first { return String(given) }
        if geteuid() == 0 { return ofRoot }
        // Relative paths must be ignored:
        // https://specifications.freedesktop.org/basedir-spec/latest/
        if let place = Environment[variable], place.hasPrefix("/") { return place + "/stated" }
        return Environment["HOME"].map { $0 + inHome + "/stated" }
    }
}

/// The default path of the configuration.
enum ConfigurationPlace {
    /// Options that name another instance, or none: the default configuration does not apply then.
    private static let exclusions: Set = [
        "--config", "--socket", "--data", "--memory", "--check-config",
    ]

    private static let directory = StandardPlace(
        managed: "CONFIGURATION_DIRECTORY",
        ofRoot: "/etc/stated",
        variable: "XDG_CONFIG_HOME",
        inHome: "/.config"
    )

    /// Nil if there is none, or if the options say that this is not the default instance.
    static func standard(for names: Set<String>) -> String? {
        guard names.isDisjoint(with: exclusions), let directory = directory.path else { return nil }
        let path = directory + "/stated.json5"
        // If the file exists but cannot be read, the start must fail.
        return access(path, F_OK) == 0 || errno != ENOENT && errno != ENOTDIR ? path : nil
    }
}

/// The directory of the values.
enum DataDirectory {
    private static let directory = StandardPlace(
        managed: "STATE_DIRECTORY",
        ofRoot: "/var/lib/stated",
        variable: "XDG_STATE_HOME",
        inHome: "/.local/state"
    )

    /// The directory of `options`, else the service manager's, else the user's own; created if
    /// missing.
    ///
    /// - Throws: ``StateError/Code/err`` if none is known, ``StateError/Code/storage`` if it cannot
    ///   be created.
    static func prepare(_ options: Options) throws(StateError) -> String {
        let directory = try path(options)
        try Directory.make(directory, failingWith: .storage)
        return directory
    }

    /// The same directory, without creating it.
    static func path(_ options: Options) throws(StateError) -> String {
        if let path = options.configuration.dataDirectory ?? directory.path { return path }
        throw StateError(.err, "no data directory is known: set HOME or use --data DIRECTORY")
    }
}
