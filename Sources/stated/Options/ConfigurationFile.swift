import Glibc
import StateEngine
import StateJSON
import StateRules
import StateServer
import StateSystem

/// A configuration in JSON5: a file, and those of the folders `rules.d` and `defaults.d` of its layers.
struct ConfigurationFile {
    /// The largest file that is read, in bytes.
    private static let byteLimit = 16 << 20

    private let path: String
    private let document: JSON5Document
    private let isEmpty: Bool
    /// Its name in messages.
    private var name = ""
    /// Whether it has defaults, not rules.
    private var hasDefaults = false

    /// Reads a configuration; options that it does not set are as in `base`.
    ///
    /// - Parameters:
    ///   - path: The file; `-` is standard input, beside which there are no others.
    ///   - base: The options that the files do not set.
    ///   - accounts: Finds users and groups by name.
    ///   - findings: Gets everything that is wrong, and warnings.
    /// - Returns: The configuration.
    /// - Throws: ``StateError/Code/err``: the first of what is wrong: the file, the place in it, what
    ///   was read and what was expected.
    static func read(
        _ path: String,
        over base: Configuration = Configuration(),
        accounts: AccountDirectory = .system(),
        _ findings: ConfigurationFindings
    ) throws(StateError) -> Configuration {
        var files = [ConfigurationFile(path, try main(path, findings))]
        let layers = ConfigurationLayers(of: path, files[0].document.value, findings.waiting)
        for folder in ["rules.d", "defaults.d"] {
            for file in try layers.files(in: folder) {
                var read = ConfigurationFile(file.path, try layers.bytes(of: file.path))
                // An empty file hides those of lower layers.
                guard !read.isEmpty else { continue }
                (read.name, read.hasDefaults) = (file.name, folder == "defaults.d")
                files.append(read)
            }
        }
        let read = files
        findings.locate = { read[$0.part].finding($0) }
        findings.offset = { read[$0.part].document.offset(of: $0.path) ?? 0 }
        for (part, file) in files.enumerated() {
            findings.add(
                errors: file.document.faults.map { file.finding($0.place, $0.message, part) }
            )
        }
        let parts = files.enumerated().map { part, file in
            Configuration.Part(
                name: part == 0 ? nil : file.name,
                value: file.document.value,
                lines: file.hasDefaults
                    ? [] : file.document.lines(ofElementsOf: JSONPath().member("rules")),
                defaultsFile: file.hasDefaults ? file.path : nil
            )
        }
        do throws(OptionFault) {
            let configuration = try Configuration(
                parts,
                over: base,
                accounts: accounts,
                schemas: SchemaLibrary { layers.schemaFile($0) }
            )
            findings.add(warnings: configuration.warnings)
            findings.reservedFolders = layers.reservedFolders
            if findings.errors.isEmpty { return configuration }
        } catch {
            let faults = error.all.filter { !files[$0.part].document.isDoubtful($0.path) }
            findings.add(faults: faults)
        }
        throw StateError(.err, findings.summary ?? "\(path) cannot be used")
    }

    private init(_ path: String, _ bytes: [UInt8]) {
        self.path = path
        isEmpty = bytes.isEmpty
        document = JSON5Document(bytes)
    }

    private func finding(_ fault: OptionFault) -> ConfigurationFindings.Finding {
        finding(document.place(of: fault.path), fault.description, fault.part)
    }

    private func finding(
        _ place: JSON5Document.Place?,
        _ sentence: String,
        _ part: Int
    ) -> ConfigurationFindings.Finding {
        let shownPlace = place.map { ":\($0)" } ?? ""
        return ConfigurationFindings.Finding(
            part: part,
            place: place,
            message: StateError.printable(
                "\(path == "-" ? "standard input" : path)\(shownPlace): \(sentence)"
            ),
            excerpt: place.map { document.excerpt(of: $0) }
        )
    }

    // MARK: Files

    /// The bytes of the file that is named on the command line: at the start it may be a pipe, which a
    /// reload would find at its end.
    private static func main(
        _ path: String,
        _ findings: ConfigurationFindings
    ) throws(StateError) -> [UInt8] {
        let isReload = findings.waiting != nil
        let name = path == "-" ? "standard input" : path
        return try findings.waiting.during(name) { () throws(StateError) in
            guard path != "-" else { return try contents(of: dup(STDIN_FILENO), name) }
            return try bytes(path, as: isReload ? .fileOrNull : .stream)
        }
    }

    /// The bytes of a file.
    static func bytes(
        _ path: String,
        as kind: NamedFile.Kind = .fileOrNull
    ) throws(StateError) -> [UInt8] {
        let descriptor: Int32
        do throws(OpenFailure) { descriptor = try NamedFile.open(path, O_RDONLY, as: kind) } catch {
            throw StateError(.err, error.sentence(path, "read"))
        }
        return try contents(of: descriptor, path)
    }

    private static func contents(
        of descriptor: Int32,
        _ name: String
    ) throws(StateError) -> [UInt8] {
        defer { close(descriptor) }
        guard let bytes = NamedFile.contents(of: descriptor, limit: byteLimit) else {
            throw unreadable(name)
        }
        guard bytes.count <= byteLimit else {
            throw StateError(.err, "\(name) has more than \(byteLimit) bytes, the limit")
        }
        return bytes
    }

    static func unreadable(_ path: String) -> StateError {
        StateError(.err, "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
}

extension AccountDirectory {
    /// The users and groups of the system, each looked up once.
    ///
    /// - Parameter waiting: A reload that waits for them: a server may have to be asked.
    /// - Returns: The look-ups, which remember what they have found.
    static func system(_ waiting: ReloadWait? = nil) -> AccountDirectory {
        let (users, groups) = (KnownNumbers("user", waiting), KnownNumbers("group", waiting))
        return AccountDirectory(
            user: { name in
                users.number(of: name) {
                    var entry = passwd()
                    var found: UnsafeMutablePointer<passwd>?
                    var buffer = [CChar](repeating: 0, count: 64 << 10)
                    let code = getpwnam_r(name, &entry, &buffer, buffer.count, &found)
                    return code == 0 && found != nil ? entry.pw_uid : nil
                }
            },
            group: { name in
                groups.number(of: name) {
                    var entry = Glibc.group()
                    var found: UnsafeMutablePointer<Glibc.group>?
                    var buffer = [CChar](repeating: 0, count: 1 << 20)
                    let code = getgrnam_r(name, &entry, &buffer, buffer.count, &found)
                    return code == 0 && found != nil ? entry.gr_gid : nil
                }
            }
        )
    }
}

/// Users or groups that were looked up before: 50,000 rules with a group took 2 s.
private final class KnownNumbers: Sendable {
    private let numbers = StateLock([String: UInt32?]())
    private let kind: String
    private let waiting: ReloadWait?

    init(_ kind: String, _ waiting: ReloadWait?) { (self.kind, self.waiting) = (kind, waiting) }

    func number(of name: String, _ find: () -> UInt32?) -> UInt32? {
        numbers.withLock { numbers in
            if let known = numbers[name] { return known }
            let number = (try? waiting.during("the look-up of \(kind) \"\(name)\"", find)) ?? nil
            numbers[name] = .some(number)
            return number
        }
    }
}
