import Glibc
import StateEngine
import StateServer

/// Where the values live.
enum DataDirectory {
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
        if let given = options.dataDirectory { return given }
        return try standard()
    }

    private static func standard() throws(StateError) -> String {
        // Several are separated by colons; the first is ours.
        if let given = Environment["STATE_DIRECTORY"]?.split(separator: ":").first {
            return String(given)
        }
        if geteuid() == 0 { return "/var/lib/stated" }
        // A relative path there is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
        if let home = Environment["XDG_STATE_HOME"], home.hasPrefix("/") { return home + "/stated" }
        if let home = Environment["HOME"] { return home + "/.local/state/stated" }
        throw StateError(.err, "nothing says where the values live: set HOME, or give --data")
    }
}
