/// What a watch asks for: a key, everything below a prefix, or a glob of `*` and `?`.
///
/// Written a second time, and simply: a validator that matched with the daemon's own code could not see it err. The keys
/// of the runs are ASCII, and no glob of theirs has a class or a `\`.
package struct WatchPattern: Hashable, Sendable {
    /// As it stands on the wire.
    package let text: String

    /// Takes the pattern as it stands on the wire.
    package init(_ text: String) { self.text = text }

    /// Whether a change of `key` is told.
    package func matches(_ key: String) -> Bool {
        if text == "/" { return true }
        if text.utf8.contains(where: { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }) {
            return Self.glob(text.utf8[...], key.utf8[...])
        }
        return text.utf8.last == UInt8(ascii: "/") ? key.hasPrefix(text) : key == text
    }

    private static func glob(_ pattern: Substring.UTF8View, _ key: Substring.UTF8View) -> Bool {
        guard let first = pattern.first else { return key.isEmpty }
        if first == UInt8(ascii: "*") {
            return glob(pattern.dropFirst(), key) || !key.isEmpty && glob(pattern, key.dropFirst())
        }
        guard let byte = key.first, first == UInt8(ascii: "?") || first == byte else {
            return false
        }
        return glob(pattern.dropFirst(), key.dropFirst())
    }
}

extension WatchPattern: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral text: String) { self.init(text) }
    package var description: String { text }
}

extension [WatchPattern] {
    /// Whether a change of `key` is told, to whoever asked for all of these.
    package func match(_ key: String) -> Bool { contains { $0.matches(key) } }
}
