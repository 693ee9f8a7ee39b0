package import StateModel

/// Keys and their values as a JSON object gives them, with prefixes as objects inside.
///
/// A member whose name ends in `/` is a prefix, and its value an object with the names below it. Any
/// other name is a key, whatever its value is: an object is then the value of the key, never a
/// prefix without a slash. So what a file means depends on nothing but the file.
///
/// ```
/// { "audio/": { volume: 0.7, "eq/": { bass: 2 } } }    audio/volume and audio/eq/bass
/// { audio: { volume: 0.7 } }                           audio, with the value {"volume":0.7}
/// ```
package struct NestedValues {
    /// A key with its value.
    package struct Member {
        package let key: Key
        /// The bytes of an entry with that value: the text of a string, the JSON of anything else;
        /// nil for `null`.
        package let value: [UInt8]?
        /// The value as JSON.
        package let json: [UInt8]
        package let path: JSONPath
    }

    /// In the order of their keys below each prefix.
    package private(set) var members: [Member] = []
    /// All prefixes, also those inside others; `/` alone is everything.
    package private(set) var prefixes: [Pattern] = []
    package private(set) var faults: [(path: JSONPath, message: String)] = []
    private var known: Set<Key> = []

    /// Reads an object; ``faults`` has what is wrong with it.
    package init(_ value: JSONValue) { read(value, at: JSONPath(), below: []) }

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
            do throws(StateError) {
                try read(value, of: prefix + Array(name.utf8), at: path)
            } catch {
                note(path, error.message)
            }
        }
    }

    private mutating func read(
        _ value: JSONValue,
        of name: [UInt8],
        at path: JSONPath
    ) throws(StateError) {
        let slash = UInt8(ascii: "/")
        guard name.last == slash else { return try take(value, for: try Key(bytes: name), path) }
        prefixes.append(name == [slash] ? .everything : try Pattern(literal: name))
        read(value, at: path, below: name == [slash] ? [] : name)
    }

    private mutating func take(
        _ value: JSONValue,
        for key: Key,
        _ path: JSONPath
    ) throws(StateError) {
        guard known.insert(key).inserted else {
            return note(path, "the key '\(key)' is in the file already")
        }
        let json = try value.text()
        let bytes: [UInt8]? =
            switch value {
            case .null: nil
            case .string(let text): Array(text.utf8)
            default: json
            }
        members.append(Member(key: key, value: bytes, json: json, path: path))
    }
}
