/// Values of every shape that Codable has.
struct Point: Codable, Hashable, Sendable {
    var x = 1
    var y = -2
}

struct Empty: Codable, Hashable, Sendable {}

struct Options: Codable, Hashable, Sendable {
    var name: String?
    var size: Int?
    var points: [Point?]?
}

enum Theme: String, Codable, Hashable, Sendable, CodingKeyRepresentable { case light, dark }
enum Level: Int, Codable, Hashable, Sendable {
    case low = -1
    case high = 300
}
enum Shape: Codable, Hashable, Sendable {
    case circle(Double)
    case square(side: Int, name: String?)
    case none
    indirect case group([Shape])
}

struct Settings: Codable, Hashable, Sendable {
    var theme = Theme.dark
    var volume = 0.7
    var tags = ["a", "b/c"]
    var icon: [UInt8] = [0, 127, 255]
    var shape = Shape.square(side: 3, name: nil)
    var limits = ["low": 1, "high": 2]
    var options = Options(name: "é😀", size: nil, points: [Point(), nil])
}

/// Asks for nested containers, in an order that is not that of the names.
struct Nested: Codable, Hashable, Sendable {
    var values: [Int] = [1, 2, 3]
    var label = "l"

    private enum Keys: String, CodingKey { case outer, list }
    private enum Inner: String, CodingKey { case label, deeper }

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let outer = try container.nestedContainer(keyedBy: Inner.self, forKey: .outer)
        label = try outer.decode(String.self, forKey: .label)
        var list = try container.nestedUnkeyedContainer(forKey: .list)
        values = []
        while !list.isAtEnd { values.append(try list.decode(Int.self)) }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        var outer = container.nestedContainer(keyedBy: Inner.self, forKey: .outer)
        var list = container.nestedUnkeyedContainer(forKey: .list)
        for value in values { try list.encode(value) }
        try outer.encode(label, forKey: .label)
        var deeper = outer.nestedUnkeyedContainer(forKey: .deeper)
        try deeper.encodeNil()
        var deepest = deeper.nestedContainer(keyedBy: Inner.self)
        try deepest.encode(true, forKey: .label)
        var row = deeper.nestedUnkeyedContainer()
        try row.encode(0.5)
    }
}

class Base: Codable {
    var base = 1

    init() {}
}

/// Encodes its superclass into the same object, or below `super`.
final class Derived: Base {
    var derived = "d"
    let isFlat: Bool

    private enum Keys: String, CodingKey { case derived, isFlat }

    init(isFlat: Bool) {
        self.isFlat = isFlat
        super.init()
    }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        derived = try container.decode(String.self, forKey: .derived)
        isFlat = try container.decode(Bool.self, forKey: .isFlat)
        try super.init(from: isFlat ? decoder : container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(derived, forKey: .derived)
        try container.encode(isFlat, forKey: .isFlat)
        try super.encode(to: isFlat ? encoder : container.superEncoder())
    }
}

extension Base: Equatable {
    static func == (left: Base, right: Base) -> Bool {
        guard let (left, right) = (left, right) as? (Derived, Derived) else {
            return left.base == right.base
        }
        return left.base == right.base && left.derived == right.derived
            && left.isFlat == right.isFlat
    }
}

/// Has no encoder of its own for what it is.
struct Silent: Codable, Hashable, Sendable {
    init() {}
    init(from decoder: any Decoder) throws {}
    func encode(to encoder: any Encoder) throws {}
}

/// Arrays in arrays, as deep as asked.
struct Deep: Codable, Hashable, Sendable {
    var depth: Int

    init(depth: Int) { self.depth = depth }

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        depth = container.isAtEnd ? 1 : try container.decode(Deep.self).depth + 1
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        if depth > 1 { try container.encode(Deep(depth: depth - 1)) }
    }
}
