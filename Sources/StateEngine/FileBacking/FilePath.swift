/// The way to a file from the directory of a store, in the bytes that the kernel takes; the directory itself is the empty one.
package struct FilePath: Hashable, CustomStringConvertible {
    package let bytes: [UInt8]

    static let root = FilePath([])

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    private static let slash = UInt8(ascii: "/")

    var isRoot: Bool { bytes.isEmpty }

    /// The directory that it is in; that of the root is the root.
    var parent: FilePath {
        FilePath(Array(bytes[..<(bytes.lastIndex(of: FilePath.slash) ?? 0)]))
    }

    /// Its last part; that of the root is `.`.
    var name: [UInt8] {
        isRoot
            ? Array(".".utf8)
            : Array(bytes[(bytes.lastIndex(of: FilePath.slash).map { $0 + 1 } ?? 0)...])
    }

    func appending(_ name: [UInt8]) -> FilePath {
        isRoot ? FilePath(name) : FilePath(bytes + [FilePath.slash] + name)
    }

    /// The directories that it is in, the nearest first, and the root last.
    var ancestors: [FilePath] {
        guard !isRoot else { return [] }
        var found = [parent]
        while let last = found.last, !last.isRoot { found.append(last.parent) }
        return found
    }

    package var description: String {
        isRoot ? "'.'" : bytes.withUnsafeBytes { StateError.quoted($0, upTo: 1_024) }
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
