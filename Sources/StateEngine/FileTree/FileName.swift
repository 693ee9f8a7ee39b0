/// The file of a key, and the key of a file: one to one for every key that a directory can hold.
///
/// Each segment of a key is a name. `%XX` stands for `%`, for the bytes of the segments `.` and
/// `..`, and for the `.` at the start of another segment. `%2F` stands for an empty segment with
/// the `/` behind it:
///
/// ```
/// audio/volume    audio/volume        ../x    %2E%2E/x
/// 100%            100%25              a//b    a/%2Fb
/// ```
///
/// Names that begin with `.`, or end in `~` or `.lock`, belong to editors, tools and this backing:
/// they are not keys, and a key with such a segment is refused.
package enum FileName {
    /// The longest name that Linux file systems accept.
    static let maximumByteCount = 255

    /// The file of `key`, whose first `prefixByteCount` bytes are not part of the path.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and what is wrong with it.
    static func path(
        of key: Bytes,
        from prefixByteCount: Int = 0
    ) throws(StateError) -> FilePath {
        var path: [UInt8] = []
        path.reserveCapacity(key.count + 8)
        var nameStart = 0
        var start = prefixByteCount
        while start <= key.count {
            let end = key[start...].firstIndex(of: UInt8(ascii: "/")) ?? key.count
            encode(key.slice(start, end), into: &path)
            if end > start || end == key.count {
                try check(path[nameStart...], of: key)
                if end < key.count { path.append(UInt8(ascii: "/")) }
                nameStart = path.count
            }
            start = end + 1
        }
        return FilePath(path)
    }

    package static func path(of key: Key) throws(StateError) -> FilePath {
        try key.bytes.withBorrowed { (bytes) throws(StateError) in try path(of: bytes) }
    }

    /// The key whose value is in the file at `path`; nil if there is none.
    package static func key(of path: FilePath) -> Key? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.bytes.count)
        var index = 0
        while index < path.bytes.count {
            if path.bytes[index] == UInt8(ascii: "%") {
                guard index + 2 < path.bytes.count, let high = digit(path.bytes[index + 1]),
                    let low = digit(path.bytes[index + 2])
                else { return nil }
                bytes.append(high << 4 | low)
                index += 3
            } else {
                bytes.append(path.bytes[index])
                index += 1
            }
        }
        // One to one: of all the ways to escape a key, only the one of `path(of:)` is accepted.
        guard let key = try? Key(bytes: bytes), (try? self.path(of: key)) == path else {
            return nil
        }
        return key
    }

    /// Whether a name may be part of a key's path.
    static func isOfKey(_ name: [UInt8]) -> Bool {
        name.first != UInt8(ascii: ".") && name.last != UInt8(ascii: "~")
            && !(name.count >= 5 && name.suffix(5).elementsEqual(".lock".utf8))
    }

    private static func encode(_ segment: Bytes, into path: inout [UInt8]) {
        guard segment.count > 0 else {
            path += "%2F".utf8
            return
        }
        let dot = UInt8(ascii: ".")
        let isDots = segment.count <= 2 && segment.allSatisfy { $0 == dot }
        for (index, byte) in segment.enumerated() {
            if byte == UInt8(ascii: "%") {
                path += "%25".utf8
            } else if byte == dot, isDots || index == 0 {
                path += "%2E".utf8
            } else {
                path.append(byte)
            }
        }
    }

    private static func check(_ name: ArraySlice<UInt8>, of key: Bytes) throws(StateError) {
        guard name.count <= maximumByteCount else {
            throw refusal(
                key,
                "one of its segments makes a file name of \(name.count) bytes; the limit is "
                    + "\(maximumByteCount)"
            )
        }
        guard isOfKey(Array(name)) else {
            throw refusal(
                key,
                "names that end in '~' or '.lock' are reserved for editors and tools"
            )
        }
    }

    private static func refusal(_ key: Bytes, _ reason: String) -> StateError {
        StateError(.rejected, "key \(StateError.quoted(key)) cannot be a file: \(reason)")
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
