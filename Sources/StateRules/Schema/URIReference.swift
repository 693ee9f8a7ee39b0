/// A URI or a relative reference, in its components.
///
/// https://www.rfc-editor.org/rfc/rfc3986#appendix-B
struct URIReference {
    var scheme: Substring?
    var authority: Substring?
    var path: Substring
    var query: Substring?
    var fragment: Substring?

    init(_ text: String) {
        var rest = text[...]
        if let hash = rest.firstIndex(of: "#") {
            fragment = rest[rest.index(after: hash)...]
            rest = rest[..<hash]
        }
        if let question = rest.firstIndex(of: "?") {
            query = rest[rest.index(after: question)...]
            rest = rest[..<question]
        }
        if let colon = rest.firstIndex(of: ":"), colon > rest.startIndex,
            !rest[..<colon].utf8.contains(UInt8(ascii: "/"))
        {
            scheme = rest[..<colon]
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            authority = rest[..<end]
            rest = rest[end...]
        }
        path = rest
    }

    /// The text, without the fragment.
    var address: String {
        (scheme.map { "\($0):" } ?? "") + (authority.map { "//\($0)" } ?? "") + path
            + (query.map { "?\($0)" } ?? "")
    }

    /// The reference as seen from `base`.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3986#section-5.2.2
    func resolved(against base: String) -> URIReference {
        var target = self
        guard scheme == nil else {
            target.path = URIReference.withoutDots(path)
            return target
        }
        let base = URIReference(base)
        target.scheme = base.scheme
        guard authority == nil else {
            target.path = URIReference.withoutDots(path)
            return target
        }
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.hasPrefix("/") {
            target.path = URIReference.withoutDots(path)
        } else {
            let last = base.path.lastIndex(of: "/")
            let folder = last.map { base.path[...$0] } ?? (base.authority == nil ? "" : "/")
            target.path = URIReference.withoutDots(folder + path)
        }
        return target
    }

    private static func withoutDots(_ path: Substring) -> Substring {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.contains(where: { $0.hasPrefix(".") }) else { return path }
        var parts: [Substring] = []
        for (index, part) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch part {
            case ".": if isLast { parts.append("") }
            case "..":
                if parts.count > 1 || parts.first.map({ !$0.isEmpty }) ?? false {
                    parts.removeLast()
                }
                if isLast { parts.append("") }
            default: parts.append(part)
            }
        }
        return parts.joined(separator: "/")[...]
    }

    /// The text with each `%` and two digits as the byte that they stand for; nil if it is not
    /// UTF-8, or a `%` has no digits.
    static func percentDecoded(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let pair = String(decoding: rest.prefix(2), as: UTF8.self)
            guard pair.utf8.count == 2, pair.allSatisfy(\.isHexDigit),
                let value = UInt8(pair, radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
