/// The keys that a caller selects: one key, everything below a prefix, or the matches of a glob.
///
/// A text that contains `*`, `?` or `[` is a glob, one that ends in `/` a prefix, any other a key.
/// `/` alone is everything. In a glob `*` matches `/` too, as in Redis, and `\` escapes the next
/// byte. In a text without an unescaped `*`, `?` or `[`, each `\` is removed, so `\FROM` is the key
/// `FROM`.
public struct Pattern: Hashable, Sendable {
    /// What kind of pattern this is.
    public enum Kind: Hashable, Sendable {
        /// Exactly the key in the literal.
        case key
        /// Every key that begins with the literal; an empty literal is everything.
        case prefix
        /// Every key that matches the glob; all of them begin with the literal.
        case glob
    }

    /// The pattern as it was written.
    public let bytes: [UInt8]
    /// Its kind.
    public let kind: Kind
    /// The prefix that all matching keys share (for a key: the key).
    public let literal: [UInt8]

    /// How many globs it counts as: comparing a key takes longer with each `*` and each byte.
    package var globCount: Int {
        kind == .glob ? 1 + bytes.count { $0 == UInt8(ascii: "*") } / 8 + bytes.count / 128 : 0
    }

    /// All keys.
    public static let everything = Pattern(kind: .prefix, literal: [], bytes: [UInt8(ascii: "/")])

    /// Reads a pattern.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the pattern and the rule that it breaks.
    public init(_ bytes: Bytes) throws(StateError) {
        if bytes.count == 1, bytes[0] == UInt8(ascii: "/") {
            self = .everything
            return
        }
        let (literal, isGlob) = Pattern.literalPart(of: bytes)
        let isPrefix = !isGlob && literal.last == UInt8(ascii: "/")
        self.init(
            kind: isGlob ? .glob : isPrefix ? .prefix : .key,
            literal: literal,
            bytes: Array(bytes)
        )
        let fault =
            isGlob
            ? Key.fault(of: bytes)
            : literal.withUnsafeBytes { Key.fault(of: isPrefix ? $0.slice(0, $0.count - 1) : $0) }
        guard let fault else { return }
        if isGlob, case .endsInSlash = fault { return }
        throw fault.error(for: bytes)
    }

    /// Reads a pattern from text.
    ///
    /// - Throws: as ``init(_:)-(Bytes)``.
    public init(_ text: String) throws(StateError) {
        var text = text
        self = try text.withUTF8 { (bytes) -> Result<Pattern, StateError> in
            Result { () throws(StateError) in try Pattern(Bytes(bytes)) }
        }.get()
    }

    /// A glob as in Redis's KEYS and SCAN: the complete text, no prefixes.
    public init(redisGlob bytes: Bytes) {
        let (literal, isGlob) = Pattern.literalPart(of: bytes)
        self.init(kind: isGlob ? .glob : .key, literal: literal, bytes: Array(bytes))
    }

    /// Exactly `key`: the text has a `\` before each special byte.
    public init(_ key: Key) {
        self.init(kind: .key, literal: key.bytes, bytes: Pattern.escaped(key.bytes))
    }

    /// The pattern that matches exactly `text`: a key, or everything below it if it ends in `/`.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the rule of keys that the text breaks.
    package init(literal text: [UInt8]) throws(StateError) {
        self = try Pattern.escaped(text).withUnsafeBufferPointer { (bytes) throws(StateError) in
            try Pattern(Bytes(bytes))
        }
    }

    /// `text` with a `\` before each byte that is special in a pattern.
    package static func escaped(_ text: [UInt8]) -> [UInt8] {
        func isPlain(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "["), UInt8(ascii: "\\"): false
            default: true
            }
        }
        if text.allSatisfy(isPlain) { return text }
        return text.flatMap { isPlain($0) ? [$0] : [UInt8(ascii: "\\"), $0] }
    }

    private init(kind: Kind, literal: [UInt8], bytes: [UInt8]) {
        self.kind = kind
        self.literal = literal
        self.bytes = bytes
    }

    /// Whether `key` matches.
    ///
    /// - Complexity: for a glob at most pattern times key, otherwise O(*n*).
    public func matches(_ key: Bytes) -> Bool {
        literal.withUnsafeBytes { literal in
            switch kind {
            case .key: return key.isEqual(to: literal)
            case .prefix: return key.hasPrefix(literal)
            case .glob:
                var steps = 0
                return key.hasPrefix(literal) && matchesGlob(key, counting: &steps)
            }
        }
    }

    /// The same; takes the steps of comparing a glob from `left`, which may become negative.
    package func matches(_ key: Bytes, counting left: inout Int) -> Bool {
        guard kind == .glob else { return matches(key) }
        return literal.withUnsafeBytes { key.hasPrefix($0) } && matchesGlob(key, counting: &left)
    }

    /// Whether a key that begins with the literal prefix matches.
    private func matchesGlob(_ key: Bytes, counting left: inout Int) -> Bool {
        isPrefixWithStar
            || bytes.withUnsafeBytes { Glob.matches($0, key, counting: &left) }
    }

    /// The bytes before the first unescaped metacharacter, unescaped, and whether there is one.
    private static func literalPart(of bytes: Bytes) -> (literal: [UInt8], isGlob: Bool) {
        var literal: [UInt8] = []
        literal.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            var byte = bytes[index]
            if byte == UInt8(ascii: "*") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "[") {
                return (literal, true)
            }
            if byte == UInt8(ascii: "\\"), index + 1 < bytes.count {
                index += 1
                byte = bytes[index]
            }
            literal.append(byte)
            index += 1
        }
        return (literal, false)
    }
}

extension Pattern: CustomStringConvertible, ExpressibleByStringLiteral {
    /// The pattern as it was written.
    public var description: String { String(decoding: bytes, as: UTF8.self) }

    /// A pattern in the source code; an invalid one ends the process with a message.
    public init(stringLiteral text: String) {
        do throws(StateError) {
            try self.init(text)
        } catch {
            fatalError(error.message)
        }
    }
}

extension Pattern {
    /// Everything that begins with the literal prefix of `glob`.
    package init(literalPartOf glob: Pattern) {
        self.init(kind: .prefix, literal: glob.literal, bytes: glob.bytes)
    }

    /// The glob of everything that begins with the literal prefix of `glob`, which is found by that
    /// prefix alone.
    package init(beginningOf glob: Pattern) {
        let bytes = glob.literal + [UInt8(ascii: "*")]
        self.init(kind: .glob, literal: glob.literal, bytes: bytes)
    }

    /// Whether it is a glob that has nothing but a `*` after its literal prefix.
    private var isPrefixWithStar: Bool {
        bytes.count == literal.count + 1 && bytes.last == UInt8(ascii: "*")
    }
}

extension Pattern {
    /// Whether some key may match both; for two globs the answer is not exact.
    package func mayMeet(_ other: Pattern) -> Bool {
        if kind == .key { return literal.withUnsafeBytes { other.matches($0) } }
        if other.kind == .key { return other.literal.withUnsafeBytes { matches($0) } }
        return literal.starts(with: other.literal) || other.literal.starts(with: literal)
    }

    /// Whether some text matches both; the rules of keys are not regarded.
    ///
    /// - Complexity: O(*n* · *m*) in the bytes of both, if their literals begin alike.
    package func meets(_ other: Pattern) -> Bool {
        guard mayMeet(other) else { return false }
        guard kind == .glob && other.kind != .key || other.kind == .glob && kind != .key else {
            return true
        }
        return GlobShape(self).meets(GlobShape(other))
    }
}

extension Pattern {
    /// Whether this pattern takes precedence over `other`: a key over a prefix over a glob, then
    /// the one with the longer literal.
    package func isMoreSpecific(than other: Pattern) -> Bool {
        let (mine, theirs) = (kind.rank, other.kind.rank)
        return mine != theirs ? mine > theirs : literal.count > other.literal.count
    }
}

extension Pattern.Kind {
    /// Higher is more specific.
    fileprivate var rank: Int {
        switch self {
        case .key: 2
        case .prefix: 1
        case .glob: 0
        }
    }
}
