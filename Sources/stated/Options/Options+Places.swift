import Glibc
import StateEngine
import StateRules

extension Options {
    /// Refuses a directory of keys that has the daemon's own files in it, or is among them: who may read and write keys there could
    /// read the store past every rule, and remove it.
    ///
    /// - Throws: ``StateError/Code/err``, naming both.
    func checkPlaces() throws(StateError) {
        // Where nothing says where the values live, that is said later.
        let data = (try? DataDirectory.path(self)).map(Options.resolved)
        let file = path.map(Options.resolved)
        for rule in configuration.rules.rules {
            guard case .file(let directory, _)? = rule.backing else { continue }
            let place = Options.resolved(directory)
            let name = "\(path ?? ""): rules[\(rule.index)].directory: \(directory)"
            if let data, place.starts(with: data) || data.starts(with: place) {
                throw Options.misplaced(
                    name,
                    "and the data directory, /\(data.joined(separator: "/")), overlap; the store is not for clients"
                )
            }
            if let file, file.starts(with: place) {
                throw Options.misplaced(
                    name,
                    "has the configuration in it, which is not for clients"
                )
            }
        }
    }

    private static func misplaced(_ name: String, _ sentence: String) -> StateError {
        StateError(.err, "\(name) \(sentence): choose another directory")
    }

    /// The names of the directories that lead to a place, without links; what is not there yet stands as it is named.
    private static func resolved(_ path: String) -> [Substring] {
        var rest: [Substring] = []
        var parts = path.split(separator: "/").filter { $0 != "." }
        if !path.hasPrefix("/"), let here = realpath(".", nil) {
            defer { free(here) }
            parts = String(cString: here).split(separator: "/") + parts
        }
        while let last = parts.last {
            if let found = realpath("/" + parts.joined(separator: "/"), nil) {
                defer { free(found) }
                return String(cString: found).split(separator: "/") + rest.reversed()
            }
            rest.append(last)
            parts.removeLast()
        }
        return rest.reversed()
    }
}
