/// The text of a URL with a base, which `URL` encodes as two texts.
///
/// The rules are those of RFC 3986, section 5.2:
/// https://www.rfc-editor.org/rfc/rfc3986#section-5.2
enum URLText {
    /// The absolute text of a reference in a document at `base`.
    static func resolve(_ reference: String, against base: String) -> String {
        var target = Parts(reference)
        guard target.scheme == nil else { return target.withoutDots.text }
        let base = Parts(base)
        target.scheme = base.scheme
        guard target.authority == nil else { return target.withoutDots.text }
        target.authority = base.authority
        if target.path.isEmpty {
            target.path = base.path
            target.query = target.query ?? base.query
            return target.text
        }
        if !target.path.hasPrefix("/") { target.path = base.directory + target.path }
        return target.withoutDots.text
    }

    private struct Parts {
        var scheme: Substring?
        var authority: Substring?
        var path: String
        var query: Substring?
        private let fragment: Substring?

        init(_ text: String) {
            var rest = text[...]
            let end = rest.firstIndex { ":/?#".contains($0) }
            if let end, rest[end] == ":", end > rest.startIndex {
                scheme = rest[..<end]
                rest = rest[rest.index(after: end)...]
            }
            fragment = Parts.cut(&rest, at: "#")
            query = Parts.cut(&rest, at: "?")
            if rest.hasPrefix("//") {
                rest = rest.dropFirst(2)
                let end = rest.firstIndex(of: "/") ?? rest.endIndex
                authority = rest[..<end]
                rest = rest[end...]
            }
            path = String(rest)
        }

        /// Cuts off what is behind the first `mark`; nil if there is none.
        private static func cut(_ text: inout Substring, at mark: Character) -> Substring? {
            guard let place = text.firstIndex(of: mark) else { return nil }
            defer { text = text[..<place] }
            return text[text.index(after: place)...]
        }

        /// The path up to its last slash, in which a relative path is.
        var directory: String {
            if path.isEmpty, authority != nil { return "/" }
            return String(
                path[..<(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)]
            )
        }

        /// The same without the segments `.` and `..`.
        var withoutDots: Parts {
            var segments: [Substring] = []
            let all = path.split(separator: "/", omittingEmptySubsequences: false)
            for (index, segment) in all.enumerated() {
                let isLast = index == all.count - 1
                switch segment {
                case ".": if isLast { segments.append("") }
                case "..":
                    // The first segment is the empty one before the first slash.
                    if segments.count > 1 { segments.removeLast() }
                    if isLast { segments.append("") }
                default: segments.append(segment)
                }
            }
            var result = self
            result.path = segments.joined(separator: "/")
            return result
        }

        var text: String {
            [
                scheme.map { "\($0):" }, authority.map { "//\($0)" }, path, query.map { "?\($0)" },
                fragment.map { "#\($0)" },
            ].compactMap(\.self).joined()
        }
    }
}
