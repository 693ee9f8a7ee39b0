/// The place of a coder in a value: a key below another place.
///
/// Linked upwards, because only error messages need the full path.
final class CodingPlace {
    private let parent: CodingPlace?
    private let key: any CodingKey
    /// The number of keys in the path.
    let depth: Int

    init(_ key: any CodingKey, below parent: CodingPlace?) {
        self.key = key
        self.parent = parent
        depth = (parent?.depth ?? 0) + 1
    }

    /// The keys from the value itself to this place.
    var path: [any CodingKey] {
        var path: [any CodingKey] = []
        var place: CodingPlace? = self
        while let here = place {
            path.append(here.key)
            place = here.parent
        }
        return path.reversed()
    }
}

extension DecodingError.Context {
    init(_ path: [any CodingKey], _ description: String) {
        self.init(codingPath: path, debugDescription: description)
    }
}

extension DecodingError {
    static func missing(_ key: some CodingKey, at path: [any CodingKey]) -> DecodingError {
        .keyNotFound(key, .init(path, "expected a member '\(key.stringValue)', found none"))
    }
}

/// The place of an element, or a made-up key: `super`.
struct PlaceKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    static let `super` = PlaceKey(stringValue: "super")

    init(_ index: Int) { (stringValue, intValue) = (String(index), index) }

    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }

    init(intValue: Int) { self.init(intValue) }
}
