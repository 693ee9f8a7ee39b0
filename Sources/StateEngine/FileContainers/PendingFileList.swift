/// The keys whose files a commit may not have reached yet, each with the digest of its file before.
///
/// It is written in the frame of the changes themselves, so that a start can distinguish a file
/// that was not reached from one that somebody has edited since: a file with its former contents is
/// set to the stored value; a file with neither is an edit.
///
/// ```
/// 617564696f2f766f6c756d65 3:9c1f0a…
/// ```
///
/// Each line has the key in hexadecimal, and length and hash of the old value; `-` if there was no
/// file.
struct PendingFileList {
    var entries: [(key: [UInt8], old: ValueDigest?)] = []

    var text: String {
        entries.map { key, old in
            let digits = key.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            return "\(digits) \(old?.description ?? "-")\n"
        }
        .joined()
    }

    init() {}

    /// Reads ``text``; nil if it is malformed.
    init?(_ text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ")
            guard parts.count == 2, let key = PendingFileList.bytes(parts[0]) else { return nil }
            let old = ValueDigest(parts[1])
            guard old != nil || parts[1] == "-" else { return nil }
            entries.append((key, old))
        }
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        guard text.utf8.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        var rest = text
        while !rest.isEmpty {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}

/// The list of pending files that a store has.
enum StoredFileList {
    case none
    /// It names keys of the last commit.
    case whole
    /// It names only unpublished keys.
    case minimal
}

/// What a commit does to the list of pending files.
package enum PendingFileListChange: Sendable {
    case keep
    case set(String)
    case remove
}

/// A backing that keeps the list of pending files beside the entries, in the same transactions.
///
/// Called on the commit thread, or after its end.
package protocol PendingFileListBacking: Backing {
    /// The list that the last ``Backing/load(_:)`` or ``Backing/reopen(after:_:)`` found; returned
    /// once.
    func takePendingFileList() -> String?

    /// The directories that held files of keys when they were last opened, as ``FileContainers``
    /// wrote it; nil if none did.
    func fileContainers() throws -> String?

    /// Records these directories, in a transaction of its own.
    func setFileContainers(_ text: String?) throws

    /// Replaces the list, or removes it, in a transaction of its own.
    func setPendingFileList(_ text: String?) throws
}
