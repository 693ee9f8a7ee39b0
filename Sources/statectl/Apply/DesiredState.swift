import StateClient
import StateJSON
import StateModel

/// What a file says of keys: their values, those that are to be absent, and the prefixes that it
/// describes.
///
/// A member whose name ends in `/` is a prefix, and its value an object with the names below it. Any
/// other name is a key, whatever its value is: an object is the value of a key as JSON, never a
/// prefix without a slash. So the file needs no knowledge of what the daemon has stored.
struct DesiredState {
    /// The values; nil for a key that is to be absent.
    private(set) var values: [Key: [UInt8]?] = [:]
    /// All prefixes, also those inside others.
    private(set) var prefixes: [Pattern] = []

    private var faults: [(path: JSONPath, message: String)] = []

    /// Reads the content of a file.
    ///
    /// - Throws: ``Failure/usage(_:)`` with everything that is wrong, each with its line.
    init(_ text: [UInt8], of file: String) throws(Failure) {
        let document = JSON5Document(text)
        read(document.value, at: JSONPath(), below: [])
        let found =
            document.faults.map { ($0.place, $0.message) }
            + faults.filter { !document.isDoubtful($0.path) }
            .map { (document.place(of: $0.path), $0.message) }
        let sentences = found.map { DesiredState.shown($0, $1, document, file) }
        guard sentences.isEmpty else {
            throw .usage((sentences.prefix(20) + ["nothing was changed"]).joined(separator: "\n"))
        }
    }

    private static func shown(
        _ place: JSON5Document.Place?,
        _ message: String,
        _ document: JSON5Document,
        _ file: String
    ) -> String {
        guard let place else { return "\(file): \(message)" }
        let (line, caret) = document.excerpt(of: place)
        let number = String(place.line)
        let space = String(repeating: " ", count: number.utf8.count)
        return "\(file):\(place): \(message)\n  \(number) | \(line)\n  \(space) | \(caret)"
    }

    private mutating func note(_ path: JSONPath, _ message: String) {
        faults.append((path, message))
    }

    private mutating func read(_ value: JSONValue, at path: JSONPath, below prefix: [UInt8]) {
        guard case .object(let members) = value else {
            let reason = path.steps.isEmpty ? "" : ", because a name that ends in / is a prefix"
            return note(path, "expected an object with keys and values\(reason)")
        }
        for (name, value) in members.sorted(by: { JSONWriter.order($0.key, $1.key) < 0 }) {
            let path = path.member(name)
            let whole = prefix + name.bytes
            do throws(StateError) {
                if whole == [UInt8(ascii: "/")] {
                    prefixes.append(.everything)
                    read(value, at: path, below: [])
                } else if name.hasSuffix("/") {
                    prefixes.append(try Pattern(literal: whole))
                    read(value, at: path, below: whole)
                } else {
                    try take(value, for: try Key(bytes: whole), path)
                }
            } catch {
                note(path, error.message)
            }
        }
    }

    private mutating func take(
        _ value: JSONValue,
        for key: Key,
        _ path: JSONPath
    ) throws(StateError) {
        guard values[key] == nil else {
            return note(path, "the key '\(key)' is in the file already")
        }
        switch value {
        case .null: values[key] = .some(nil)
        case .string(let text): values[key] = text.bytes
        default: values[key] = try value.text()
        }
    }
}
