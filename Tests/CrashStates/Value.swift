/// What the daemon answers or pushes: RESP3, as far as it is asked for here.
enum Value: Hashable {
    case text(String)
    case error(String)
    case number(Int64)
    case bytes([UInt8])
    case null
    case list([Value])
    case push([Value])

    var number: Int64? {
        if case .number(let number) = self { return number }
        return nil
    }

    var list: [Value]? {
        if case .list(let list) = self { return list }
        return nil
    }

    var string: String? {
        switch self {
        case .text(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        default: nil
        }
    }

    var bytes: [UInt8]? {
        if case .bytes(let bytes) = self { return bytes }
        return nil
    }

    /// The value of a name in a map, which is a list of pairs.
    subscript(name: String) -> Value? {
        guard let list else { return nil }
        for index in stride(from: 0, to: list.count - 1, by: 2) where list[index].string == name {
            return list[index + 1]
        }
        return nil
    }
}

/// Cuts values out of the bytes of one connection.
struct ValueReader {
    private var bytes: [UInt8] = []
    private var start = 0
    /// Bytes of all values that were taken.
    private(set) var takenCount = 0

    mutating func append(_ more: some Sequence<UInt8>) {
        if start > 1 << 20 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes += more
    }

    /// The next whole value; nil if its end has not come yet.
    mutating func next() throws(Failure) -> Value? {
        var place = start
        guard let value = try value(at: &place) else { return nil }
        takenCount += place - start
        start = place
        return value
    }

    private func line(at place: inout Int) -> String? {
        guard let end = bytes[place...].firstIndex(of: 13), end + 1 < bytes.count else {
            return nil
        }
        defer { place = end + 2 }
        return String(decoding: bytes[place..<end], as: UTF8.self)
    }

    private func value(at place: inout Int) throws(Failure) -> Value? {
        guard let line = line(at: &place), let kind = line.first else { return nil }
        let rest = String(line.dropFirst())
        switch kind {
        case "+": return .text(rest)
        case "-": return .error(rest)
        case ":": return .number(Int64(rest) ?? 0)
        case "_": return .null
        case "#": return .text(rest)
        case ",": return .text(rest)
        case "$": return text(Int(rest) ?? 0, at: &place)
        case "*", "~": return try list(Int(rest) ?? 0, at: &place).map { .list($0) }
        case ">": return try list(Int(rest) ?? 0, at: &place).map { .push($0) }
        case "%": return try list(2 * (Int(rest) ?? 0), at: &place).map { .list($0) }
        default: throw Failure("the daemon sent '\(line)', which is no RESP3")
        }
    }

    private func text(_ count: Int, at place: inout Int) -> Value? {
        if count < 0 { return .null }
        guard place + count + 2 <= bytes.count else { return nil }
        defer { place += count + 2 }
        return .bytes(Array(bytes[place..<place + count]))
    }

    private func list(_ count: Int, at place: inout Int) throws(Failure) -> [Value]? {
        var values: [Value] = []
        for _ in 0..<max(0, count) {
            guard let value = try value(at: &place) else { return nil }
            values.append(value)
        }
        return values
    }
}
