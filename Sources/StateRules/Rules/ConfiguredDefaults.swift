import StateEngine
import StateJSON

/// The defaults in the files of `defaults.d`.
///
/// Of several files with the same key, the last counts; with `null` the key has no default.
package struct ConfiguredDefaults: Sendable {
    /// The default of a key in a file.
    struct Member: Sendable {
        let value: [UInt8]?
        let json: String
        let file: String
        /// The file, an index of ``Configuration/Part``, and the place in it.
        let part: Int
        let path: JSONPath
    }

    private(set) var members: [Key: Member] = [:]

    package init() {}

    /// Reads a file.
    ///
    /// - Returns: What is wrong with it.
    mutating func read(_ value: JSONValue, of file: String, part: Int) -> [OptionFault] {
        let read = NestedValues(value)
        for member in read.members {
            members[member.key] = Member(
                value: member.value,
                json: String(decoding: member.json, as: UTF8.self),
                file: file,
                part: part,
                path: member.path
            )
        }
        return read.faults.prefix(OptionReader.faultLimit).map {
            OptionFault($0.path, $0.message).located(in: part, after: 0)
        }
    }

    /// These, and those of rules, which files override.
    func standards(besides rules: [Rule]) -> StandardValues {
        var values: [[UInt8]: StandardValue] = [:]
        for rule in rules {
            guard let value = rule.standard, let keys = rule.keys.first, keys.kind == .key else {
                continue
            }
            values[keys.literal] = StandardValue(
                value: value,
                json: rule.writtenOptions.first { $0.name == "default" }?.value ?? "",
                origin: rule.place.description,
                isRuled: true
            )
        }
        for (key, member) in members {
            values[key.bytes] = member.value.map {
                StandardValue(value: $0, json: member.json, origin: member.file, isRuled: false)
            }
        }
        return StandardValues(values)
    }
}
