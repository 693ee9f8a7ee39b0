/// The path of a file relative to the directory of a store, as bytes; the path of the directory
/// itself is empty.
package struct FilePath: Hashable, Comparable, CustomStringConvertible {
    package let bytes: [UInt8]

    static let root = FilePath([])

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    private static let slash = UInt8(ascii: "/")

    var isRoot: Bool { bytes.isEmpty }

    /// The directory that contains it; that of the root is the root.
    var parent: FilePath {
        FilePath(Array(bytes[..<(bytes.lastIndex(of: FilePath.slash) ?? 0)]))
    }

    /// Its last component; that of the root is `.`.
    var name: [UInt8] {
        isRoot
            ? Array(".".utf8)
            : Array(bytes[(bytes.lastIndex(of: FilePath.slash).map { $0 + 1 } ?? 0)...])
    }

    /// The components of the path, its own name last.
    var names: [[UInt8]] { bytes.split(separator: FilePath.slash).map { Array($0) } }

    /// How many components it has; the root has none.
    var depth: Int { isRoot ? 0 : 1 + bytes.count { $0 == FilePath.slash } }

    func appending(_ name: [UInt8]) -> FilePath {
        isRoot ? FilePath(name) : FilePath(bytes + [FilePath.slash] + name)
    }

    /// Whether a key can be long enough to have its file in this directory; `%XX` is one byte of a
    /// key.
    ///
    /// Deeper directories are not read.
    var mayHoldKeys: Bool {
        bytes.count < Key.maximumByteCount
            || bytes.count - 2 * bytes.count { $0 == UInt8(ascii: "%") } < Key.maximumByteCount
    }

    /// Whether it is inside a directory, at any depth.
    ///
    /// - Complexity: O(*n*) in the bytes of the directory's path; nothing is allocated.
    func isBelow(_ directory: FilePath) -> Bool {
        let count = directory.bytes.count
        if count == 0 { return !isRoot }
        return bytes.count > count && bytes[count] == FilePath.slash
            && bytes.starts(with: directory.bytes)
    }

    /// The directories that contain it, the nearest first, and the root last.
    var ancestors: [FilePath] {
        guard !isRoot else { return [] }
        var found = [parent]
        while let last = found.last, !last.isRoot { found.append(last.parent) }
        return found
    }

    /// In this order, what is below a directory follows it.
    package static func < (left: FilePath, right: FilePath) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    package var description: String {
        isRoot ? "'.'" : bytes.withUnsafeBytes { StateError.quoted($0, upTo: 1_024) }
    }

    /// The path as shown in a message after that of the directory: control bytes and invalid UTF-8
    /// as `\xNN`.
    var shown: String {
        String(bytes.withUnsafeBytes { StateError.quoted($0, upTo: 1_024) }.dropFirst().dropLast())
    }

    /// The path for a system call; the root is `.`.
    func withCString<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        isRoot ? ".".withCString(body) : FilePath.withCString(bytes, body)
    }

    static func withCString<R>(_ name: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
        (name + [0]).withUnsafeBytes {
            $0.withMemoryRebound(to: CChar.self) { chars in
                guard let base = chars.baseAddress else {
                    preconditionFailure("a name without an end")
                }
                return body(base)
            }
        }
    }
}
