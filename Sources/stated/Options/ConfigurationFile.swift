import Glibc
import StateEngine
import StateJSON
import StateRules

/// A configuration in JSON5: a file, and those of the directory `rules.d` beside it.
struct ConfigurationFile {
    /// The largest file that is read, in bytes.
    private static let byteLimit = 16 << 20
    /// The most files in `rules.d`.
    private static let fileLimit = 1_000

    private let path: String
    private let document: JSON5Document

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
        accounts: AccountDirectory = .system,
        _ findings: ConfigurationFindings
    ) throws(StateError) -> Configuration {
        var files = [try ConfigurationFile(path)]
        if path != "-" {
            let directory = (path.lastIndex(of: "/").map { String(path[...$0]) } ?? "") + "rules.d"
            for name in try names(in: directory) {
                files.append(try ConfigurationFile("\(directory)/\(name)"))
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
                name: part == 0 ? nil : "rules.d/\(file.path.split(separator: "/").last ?? "")",
                value: file.document.value,
                lines: file.document.lines(ofElementsOf: JSONPath().member("rules"))
            )
        }
        do throws(OptionFault) {
            let configuration = try Configuration(
                parts,
                over: base,
                accounts: accounts,
                schemas: SchemaLibrary { schemaFile($0, beside: path) }
            )
            findings.add(warnings: configuration.warnings)
            if findings.errors.isEmpty { return configuration }
        } catch {
            let faults = error.all.filter { !files[$0.part].document.isDoubtful($0.path) }
            findings.add(faults: faults)
        }
        throw StateError(.err, findings.summary ?? "\(path) cannot be used")
    }

    private init(_ path: String) throws(StateError) {
        self.path = path
        document = JSON5Document(try ConfigurationFile.bytes(path))
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

    /// The file that a schema names, in the directory `schemas` beside the configuration; nil if
    /// there is none.
    private static func schemaFile(
        _ name: String,
        beside path: String
    ) -> Result<JSON5Document, StateError>? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "schemas", !parts[1].hasPrefix("."),
            parts[1].hasSuffix(".json5") || parts[1].hasSuffix(".json")
        else { return nil }
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        let file = folder + name
        guard access(file, F_OK) == 0 else { return nil }
        return Result { () throws(StateError) in JSON5Document(try bytes(file)) }
    }

    /// The files with rules in a directory, in the order of the bytes of their names; none if there
    /// is no such directory.
    private static func names(in directory: String) throws(StateError) -> [String] {
        guard let stream = opendir(directory) else {
            guard errno == ENOENT || errno == ENOTDIR else { throw unreadable(directory) }
            return []
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(".json5"), !name.hasPrefix(".") else { continue }
            names.append(name)
            guard names.count <= fileLimit else {
                throw StateError(.err, "\(directory) has more than \(fileLimit) files, the limit")
            }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    static func bytes(_ path: String) throws(StateError) -> [UInt8] {
        let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= byteLimit {
            let count = Glibc.read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(path) }
            if count == 0 { return bytes }
            bytes += part[..<count]
        }
        throw StateError(.err, "\(path) has more than \(byteLimit) bytes, the limit")
    }

    private static func unreadable(_ path: String) -> StateError {
        StateError(.err, "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
}

extension AccountDirectory {
    /// The users and groups of the system, each looked up once.
    static var system: AccountDirectory {
        let (users, groups) = (KnownNumbers(), KnownNumbers())
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

/// Names that were looked up before: 50,000 rules with a group took 2 s.
private final class KnownNumbers: Sendable {
    private let numbers = StateLock([String: UInt32?]())

    func number(of name: String, _ find: () -> UInt32?) -> UInt32? {
        numbers.withLock { numbers in
            if let known = numbers[name] { return known }
            let number = find()
            numbers[name] = .some(number)
            return number
        }
    }
}
