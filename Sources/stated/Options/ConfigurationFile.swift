import Glibc
import StateEngine
import StateJSON
import StateRules

/// A configuration in JSON5.
enum ConfigurationFile {
    /// The largest file that is read, in bytes.
    private static let byteLimit = 16 << 20

    /// Reads a configuration; options that it does not set are as in `base`.
    ///
    /// - Throws: ``StateError/Code/err``: the file, the place in it, what was read and what was
    ///   expected.
    static func read(
        _ path: String,
        over base: Configuration = Configuration()
    ) throws(StateError) -> Configuration {
        let document = try document(path)
        if let repeated = document.repeated {
            throw self.error(path, document, OptionFault(repeated, "this option appears twice"))
        }
        do throws(OptionFault) {
            return try Configuration(
                document.value,
                over: base,
                accounts: .system,
                schemas: SchemaLibrary { schemaFile($0, beside: path) }
            )
        } catch {
            throw self.error(path, document, error)
        }
    }

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
        return Result { () throws(StateError) in try document(file) }
    }

    private static func document(_ path: String) throws(StateError) -> JSON5Document {
        guard let text = String(validating: try bytes(path), as: UTF8.self) else {
            throw StateError(.err, "\(path) is not UTF-8")
        }
        do { return try JSON5Document(text) } catch { throw StateError(.err, "\(path):\(error)") }
    }

    private static func bytes(_ path: String) throws(StateError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
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

    private static func error(
        _ path: String,
        _ document: JSON5Document,
        _ fault: OptionFault
    ) -> StateError {
        let place = document.place(of: fault.path).map { ":\($0)" } ?? ""
        return StateError(.err, "\(path)\(place): \(fault)")
    }
}

extension AccountDirectory {
    /// The users and groups of the system.
    static var system: AccountDirectory {
        AccountDirectory(
            user: { name in
                var entry = passwd()
                var found: UnsafeMutablePointer<passwd>?
                var buffer = [CChar](repeating: 0, count: 64 << 10)
                let code = getpwnam_r(name, &entry, &buffer, buffer.count, &found)
                return code == 0 && found != nil ? entry.pw_uid : nil
            },
            group: { name in
                var entry = Glibc.group()
                var found: UnsafeMutablePointer<Glibc.group>?
                var buffer = [CChar](repeating: 0, count: 1 << 20)
                let code = getgrnam_r(name, &entry, &buffer, buffer.count, &found)
                return code == 0 && found != nil ? entry.gr_gid : nil
            }
        )
    }
}
