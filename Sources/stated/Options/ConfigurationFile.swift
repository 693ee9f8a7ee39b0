import FoundationEssentials
import Glibc
import StateContainers
import StateEngine
import StateRules

/// A configuration in JSON5.
enum ConfigurationFile {
    /// The largest one that is read.
    private static let byteLimit = 16 << 20

    /// Reads a configuration.
    ///
    /// - Throws: ``StateError/Code/err``: the file, the place in it, what was read and what may stand there.
    static func read(_ path: String) throws(StateError) -> Configuration {
        let bytes = try self.bytes(path)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw StateError(.err, "\(path) is not UTF-8")
        }
        let places = OptionPlaces(text)
        // First, for Foundation traps at some texts that are no JSON5, such as 0x0x.
        if let fault = places.fault {
            throw StateError(.err, "\(path):\(fault.place): \(fault.message)")
        }
        let value = try parse(text, path, places)
        if let repeated = places.repeated {
            throw error(path, places, OptionFault(repeated, "it stands there twice"))
        }
        do throws(OptionFault) {
            return try Configuration(value, accounts: .system)
        } catch {
            throw self.error(path, places, error)
        }
    }

    private static func bytes(_ path: String) throws(StateError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StateError(.err, "\(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= byteLimit {
            let count = Glibc.read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw StateError(
                    .err,
                    "\(path) cannot be read: \(String(cString: strerror(errno)))"
                )
            }
            if count == 0 { return bytes }
            bytes += part[..<count]
        }
        throw StateError(.err, "\(path) has more than \(byteLimit) bytes")
    }

    private static func parse(
        _ text: String,
        _ path: String,
        _ places: OptionPlaces
    ) throws(StateError) -> JSONValue {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        do {
            // Foundation 6.3 was seen to trap, not each time, at a long number that ends the text.
            let tree = try decoder.decode(ConfigurationTree.self, from: Data("\(text)\n".utf8))
            return places.exact(tree.value)
        } catch {
            throw StateError(.err, "\(path): this is no JSON5: \(error)")
        }
    }

    private static func error(
        _ path: String,
        _ places: OptionPlaces,
        _ fault: OptionFault
    ) -> StateError {
        let place = places.place(of: fault.path).map { ":\($0)" } ?? ""
        return StateError(.err, "\(path)\(place): \(fault)")
    }
}

/// Whatever JSON5 can say.
private struct ConfigurationTree: Decodable {
    let value: JSONValue

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        if let members = try? decoder.container(keyedBy: Name.self) {
            var object: [String: JSONValue] = [:]
            for name in members.allKeys {
                object[name.stringValue] = try members.decode(Self.self, forKey: name).value
            }
            value = .object(object)
        } else if var elements = try? decoder.unkeyedContainer() {
            var array: [JSONValue] = []
            while !elements.isAtEnd { array.append(try elements.decode(Self.self).value) }
            value = .array(array)
        } else {
            value = try Self.scalar(try decoder.singleValueContainer())
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> JSONValue {
        if container.decodeNil() { return .null }
        if let value = try? container.decode(Bool.self) { return .bool(value) }
        if let text = try? container.decode(String.self) { return .string(text) }
        // As exactly as Foundation can: OptionPlaces knows the digits.
        if let number = try? container.decode(Int64.self) { return .number("\(number)") }
        if let number = try? container.decode(UInt64.self) { return .number("\(number)") }
        if let number = try? container.decode(Decimal.self), !number.isNaN {
            return .number("\(number)")
        }
        let number = try container.decode(Double.self)
        return .number(number.isFinite ? "\(number)" : "a number that is not finite")
    }
}

extension AccountDirectory {
    /// What the system says of its users and groups.
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
