import Glibc
import StateEngine
import StateJSON
import StateServer

/// The directories with further files of a configuration, as systemd layers its drop-ins: those of
/// the vendor, of the running system, and of the administrator.
///
/// Of files with the same name, the one in the highest layer is read; one that is empty, or a link
/// to /dev/null, hides those below it. All that are read come in the order of their names, whatever
/// their layer: https://www.freedesktop.org/software/systemd/man/latest/systemd.unit.html
struct ConfigurationLayers {
    /// A file of a layer.
    struct File {
        let path: String
        /// Its name in messages.
        let name: String
    }

    /// The layers below that of the machine's own configuration, the lowest first.
    private static let standard = ["/usr/lib/stated", "/run/stated"]
    /// The folders in each layer.
    private static let folders = ["rules.d", "defaults.d", "schemas"]
    /// The most files in a folder.
    private static let fileLimit = 1_000

    /// The directory of the configuration, with a slash at its end if it has a name.
    private let ownDirectory: String
    /// The lowest first, without ``ownDirectory``.
    private let others: [String]

    /// The layers of a configuration; of one on standard input, only those that it names.
    ///
    /// - Parameters:
    ///   - path: The name of the configuration.
    ///   - value: What it says.
    ///   - waiting: A reload that waits for their files.
    init(of path: String, _ value: JSONValue, _ waiting: ReloadWait?) {
        ownDirectory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        let isOwn = path != "-"
        if case .array(let elements)? = value["layers"] {
            others = elements.compactMap {
                guard case .string(let text) = $0, text.hasPrefix("/") else { return nil }
                return text.hasSuffix("/") ? text : text + "/"
            }
        } else {
            let isOfMachine = isOwn && ownDirectory == "/etc/stated/"
            others = isOfMachine ? ConfigurationLayers.standard.map { $0 + "/" } : []
        }
        readsOwn = isOwn
        self.waiting = waiting
    }

    private let readsOwn: Bool
    private let waiting: ReloadWait?

    /// The layers, the lowest first.
    private var directories: [String] { others + (readsOwn ? [ownDirectory] : []) }

    /// The folders that clients must not reach through keys.
    var reservedFolders: [String] {
        directories.flatMap { layer in ConfigurationLayers.folders.map { layer + $0 } }
    }

    /// The files of a folder that count, in the order of the bytes of their names.
    func files(in folder: String) throws(StateError) -> [File] {
        var found: [String: File] = [:]
        for layer in directories {
            let isOwn = readsOwn && layer == ownDirectory
            let names = try waiting.during(layer + folder) { () throws(StateError) in
                try ConfigurationLayers.names(in: layer + folder, ending: ".json5")
            }
            for name in names {
                let path = "\(layer)\(folder)/\(name)"
                found[name] = File(path: path, name: isOwn ? "\(folder)/\(name)" : path)
            }
        }
        return found.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map(\.value)
    }

    /// The bytes of a file of a layer.
    func bytes(of path: String) throws(StateError) -> [UInt8] {
        try waiting.during(path) { () throws(StateError) in try ConfigurationFile.bytes(path) }
    }

    /// The file that a schema names; nil if no layer has it.
    func schemaFile(_ name: String) -> Result<JSON5Document, StateError>? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "schemas", !parts[1].hasPrefix("."),
            parts[1].hasSuffix(".json5") || parts[1].hasSuffix(".json")
        else { return nil }
        let paths = (others + [ownDirectory]).map { $0 + name }
        do throws(StateError) {
            for path in paths.reversed() {
                guard try waiting.during(path, { access(path, F_OK) == 0 }) else { continue }
                return .success(JSON5Document(try bytes(of: path)))
            }
            return nil
        } catch {
            return .failure(error)
        }
    }

    /// The names in a directory with an ending, but for hidden ones; none if it does not exist.
    static func names(
        in directory: String,
        ending: String = ""
    ) throws(StateError) -> [String] {
        guard let stream = opendir(directory) else {
            guard errno == ENOENT || errno == ENOTDIR else {
                throw ConfigurationFile.unreadable(directory)
            }
            return []
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(ending), !name.hasPrefix(".") else { continue }
            names.append(name)
            guard names.count <= fileLimit else {
                throw StateError(.err, "\(directory) has more than \(fileLimit) files, the limit")
            }
        }
        return names
    }
}
