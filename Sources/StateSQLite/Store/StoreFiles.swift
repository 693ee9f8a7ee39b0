import CLinux
import StateEngine

/// The files of an open store, by what they were when it was opened.
///
/// Whoever removes or replaces them leaves the process with files that have no name: it would go on and acknowledge commits that
/// no start finds.
struct StoreFiles: Sendable {
    private struct File {
        let path: String
        let number: Number?
    }

    private struct Number: Hashable {
        let device: UInt64
        let inode: UInt64

        /// Nil if nothing has this name; then the reason is in `errno`.
        init?(of path: String) {
            var (device, inode): (UInt64, UInt64) = (0, 0)
            // Not by stat(2): a commit after it took half as long again.
            guard clinux_file_number(path, &device, &inode) == 0 else { return nil }
            (self.device, self.inode) = (device, inode)
        }
    }

    private let files: [File]

    /// Notes the files that are there now: the database, its log, and its mark.
    init(_ location: StoreLocation) {
        files = [location.log, location.database, location.mark].map {
            File(path: $0, number: Number(of: $0))
        }
    }

    /// Which file is not in its place any more, in a sentence; nil if all are.
    ///
    /// - Complexity: one statx(2) for each, 1 µs.
    var finding: String? { finding(among: files[...]) }

    /// The same of the log and the database alone: where a commit is.
    var commitFinding: String? { finding(among: files[..<2]) }

    private func finding(among files: ArraySlice<File>) -> String? {
        for file in files {
            guard let number = Number(of: file.path) else {
                return
                    "\(file.path) is gone (\(lastSystemError())): what is written would be lost; put it back, or "
                    + "restart with the files that are to count"
            }
            guard number == file.number else {
                return
                    "\(file.path) was replaced by another file: what is written would be lost; put the one back that "
                    + "was there, or restart with the files that are to count"
            }
        }
        return nil
    }
}
