import Glibc
import StateEngine
import StateJSON
import StateRules
import StateServer

extension Options {
    /// Refuses a directory of keys that contains the daemon's own files or is inside their
    /// directory: clients could read or remove the store through keys, past every rule.
    ///
    /// - Throws: ``StateError/Code/err``, naming both.
    func checkPlaces(_ findings: ConfigurationFindings) throws(StateError) {
        func resolved(_ path: String) throws(StateError) -> [Substring] {
            try findings.waiting.during(path) { Options.resolved(path) }
        }
        // If no data directory is known, a later step reports that.
        let data = try (try? DataDirectory.path(self)).map(resolved)
        let file = try path.map(resolved)
        let reserved = try reservedFolders.map { (folder) throws(StateError) in
            (name: folder, parts: try resolved(folder))
        }
        for rule in configuration.rules.rules {
            guard case .file(let directory, _)? = rule.backing else { continue }
            let place = try resolved(directory)
            let fault = rule.fault(rule.path.member("directory"), directory)
            let name = "\(rule.place.file ?? path ?? ""): \(fault)"
            if let data, place.starts(with: data) || data.starts(with: place) {
                throw Options.misplaced(
                    name,
                    "overlaps the data directory, /\(data.joined(separator: "/")), which clients "
                        + "must not reach through keys"
                )
            }
            if let file, file.starts(with: place) {
                throw Options.misplaced(
                    name,
                    "contains the configuration file, which clients must not reach through keys"
                )
            }
            let folder = reserved.first {
                place.starts(with: $0.parts) || $0.parts.starts(with: place)
            }
            if let folder {
                throw Options.misplaced(
                    name,
                    "overlaps \(folder.name), which has files of the configuration, which clients "
                        + "must not reach through keys"
                )
            }
        }
    }

    private static func misplaced(_ name: String, _ sentence: String) -> StateError {
        StateError(.err, "\(name) \(sentence); choose another directory")
    }

    /// The components of a path with links resolved; those that do not exist yet stay as they are.
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
