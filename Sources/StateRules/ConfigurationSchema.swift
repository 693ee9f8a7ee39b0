import StateEngine
import StateJSON

/// A JSON Schema (draft 2020-12) of the configuration, for editors: `config/stated.schema.json`.
///
/// It says less than ``Configuration``, which reads sizes, times and patterns exactly.
package enum ConfigurationSchema {
    /// The text, with two spaces for each level.
    package static var text: String { indented(root, "") + "\n" }

    private static var root: JSONValue {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Configuration of stated",
            "type": "object",
            "additionalProperties": false,
            "properties": [
                "$schema": text("The address of this schema, for editors"),
                "socket": object(
                    "The socket file that the daemon creates",
                    [
                        "path": text("Where clients connect; at most 107 bytes", "^/"),
                        "mode": text("Permission bits in octal", octal),
                        "group": text("The group of the socket: a name or a number"),
                    ]
                ),
                "data": text("The directory of the values", "^/"),
                "credentials": text(
                    "The prefix below which systemd's credentials for the daemon become values",
                    "/$"
                ),
                "cluster": object(
                    "The cluster that some keys are a copy of",
                    [
                        "user": text("The user of the link: a name or a number"),
                        "node": text("The name of this machine; by default its host name"),
                    ]
                ),
                "limits": object(
                    "Limits of the daemon",
                    Dictionary(
                        uniqueKeysWithValues: LimitOption.allCases.map { ($0.rawValue, limit($0)) }
                    )
                ),
                "history": object(
                    "How much history is kept",
                    [
                        "age": time("How long superseded values are kept"),
                        "changes": count("How many changes are kept"),
                        "bytes": size("How many bytes of changes are kept"),
                    ]
                ),
                "layers": [
                    "description": "Directories with further rules.d, defaults.d and schemas",
                    "type": "array", "items": ["type": "string", "pattern": "^/"],
                ],
                "rules": [
                    "description": "Rules for the keys of patterns", "type": "array", "items": rule,
                ],
            ],
        ]
    }

    private static var rule: JSONValue {
        let principals: JSONValue = [
            "type": "array", "items": ["type": ["string", "integer"], "minimum": 0],
        ]
        var members: [String: JSONValue] = [
            "keys": [
                "description": "A key, a prefix that ends in /, or a glob; or several of them",
                "type": ["string", "array"], "minLength": 1, "minItems": 1,
                "items": ["type": "string", "minLength": 1],
            ],
            "backing": choice(
                "Where the values are stored",
                ["sqlite", "file", "memory", "cluster"]
            ),
            "directory": text("The directory of the files, with backing: \"file\"", "^/."),
            "shared": flag("Whether other users may write the directory"),
            "mode": text("Permission bits of the files, in octal", octal),
            "owner": text("The owner of the files"),
            "group": text("The group of the files"),
            "stale": choice(
                "What reads get while the copy of a cluster may be behind",
                Rule.Staleness.allCases.map(\.rawValue)
            ),
            "staleAfter": time("How long after the last proof such a copy counts as current"),
            "trim": flag("Whether the final line break of a file is no part of the value"),
            "durability": choice(
                "When a write is acknowledged",
                Durability.allCases.map(\.description)
            ),
            "commitEvery": time("Within which time storage has a change, with \"interval\""),
            "expire": time("How long after it was set a value is deleted"),
            "lifetime": choice(
                "Whose end deletes a value",
                Lifetime.allCases.map(\.rawValue)
            ),
            "history": [
                "description": "How much of the past of each key is kept: 0, or an object",
                "type": ["integer", "object"], "maximum": 0, "minimum": 0,
                "additionalProperties": false,
                "properties": [
                    "changes": count("How many superseded versions of a key are kept"),
                    "age": time("How long a version is kept after it was superseded"),
                ],
            ],
            "schema": [
                "description": "The valid values, as a JSON Schema", "type": ["object", "boolean"],
            ],
            "default": ["description": "What readers get for an absent key"],
            "readonly": flag("Whether nobody may change or delete the keys"),
            "writeOnce": flag("Whether a key can be set only while it is absent"),
            "audit": [
                "description": "Whether changes of a key are logged, with \"reads\" also reads",
                "enum": [true, false, "reads"],
            ],
            "limits": limits("What is refused", KeyLimit.allCases),
            "softLimits": limits(
                "What is logged",
                KeyLimit.allCases.filter { $0 != .depth && $0 != .ttl }
            ),
        ]
        for action in KeyAction.allCases { members[action.rawValue] = principals }
        var rule = object("A rule", members)
        rule["required"] = ["keys"]
        return rule
    }

    // MARK: Parts

    private static let octal = "^[0-7]{3,4}$"
    private static let sizes = "^[0-9]+(B|KiB|MiB|GiB|TiB)?$"
    private static let times = "^(0|([0-9]+(ms|s|m|h|d|w))+)$"

    private static func object(_ description: String, _ members: [String: JSONValue]) -> JSONValue {
        [
            "description": .string(description), "type": "object",
            "additionalProperties": false, "properties": .object(members),
        ]
    }

    private static func text(_ description: String, _ pattern: String? = nil) -> JSONValue {
        var value: JSONValue = ["description": .string(description), "type": "string"]
        value["pattern"] = pattern.map { .string($0) }
        return value
    }

    private static func flag(_ description: String) -> JSONValue {
        ["description": .string(description), "type": "boolean"]
    }

    private static func choice(_ description: String, _ words: [String]) -> JSONValue {
        ["description": .string(description), "enum": .array(words.map { .string($0) })]
    }

    private static func count(
        _ description: String,
        _ range: ClosedRange<Int>? = nil
    ) -> JSONValue {
        var value: JSONValue = ["description": .string(description), "type": "integer"]
        value["minimum"] = .number(String(range?.lowerBound ?? 0))
        value["maximum"] = range.map { .number(String($0.upperBound)) }
        return value
    }

    private static func size(_ description: String) -> JSONValue {
        [
            "description": .string(description), "type": ["string", "integer"], "minimum": 0,
            "pattern": .string(sizes),
        ]
    }

    private static func time(_ description: String) -> JSONValue { text(description, times) }

    private static func limit(_ option: LimitOption) -> JSONValue {
        let standard = ConfiguredLimits().text(option)
        let description = "Default: \(standard)"
        return switch option.unit {
        case .things: count(description, option.range)
        case .bytes: size(description)
        case .milliseconds: time(description)
        }
    }

    private static func limits(_ description: String, _ limits: [KeyLimit]) -> JSONValue {
        let members = limits.map { limit -> (String, JSONValue) in
            let value =
                switch limit {
                case .valueBytes: size("The largest value")
                case .bytes: size("Bytes of keys and values of all keys of the rule")
                case .ttl: time("The longest time of a value")
                case .depth: count("How deep a value may be nested", 0...JSONDocument.depthLimit)
                case .keys: count("The keys of the rule")
                case .writesPerSecond: count("Writes of one user in a second")
                case .watches: count("Watches of one user")
                case .connections: count("Connections of one user, in the rule for /")
                }
            return (limit.rawValue, value)
        }
        return object(description, Dictionary(uniqueKeysWithValues: members))
    }

    // MARK: Text

    private static func indented(_ value: JSONValue, _ space: String) -> String {
        let inner = space + "  "
        switch value {
        case .object(let members) where !members.isEmpty:
            let lines = members.sorted { JSONWriter.order($0.key, $1.key) < 0 }.map {
                "\(inner)\(plain(.string($0.key))): \(indented($0.value, inner))"
            }
            return "{\n\(lines.joined(separator: ",\n"))\n\(space)}"
        case .array(let elements) where !elements.isEmpty:
            return "[\(elements.map(plain).joined(separator: ", "))]"
        default: return plain(value)
        }
    }

    private static func plain(_ value: JSONValue) -> String {
        // Nothing here is nested too deep, and no number is wrong.
        String(decoding: (try? value.text()) ?? [], as: UTF8.self)
    }
}
