import CLinux
import StateEngine
import StatePlatform
import StateSystem

/// The files of an open store, by their identities when it was opened.
///
/// If somebody removes or replaces them, the process keeps files without names: it would continue
/// to acknowledge commits that no start finds.
struct StoreFiles: Sendable {
    private struct File {
        let path: String
        let number: Number?
    }

    private struct Number: Hashable {
        let device: UInt64
        let inode: UInt64

        /// Nil if the name does not exist; the reason is in `errno`.
        init?(of path: String) {
            var (device, inode): (UInt64, UInt64) = (0, 0)
            // Not by stat(2), with which a commit took half as long again.
            guard clinux_file_number(path, &device, &inode) == 0 else { return nil }
            (self.device, self.inode) = (device, inode)
        }
    }

    private let files: [File]
    private let names: NameWatch?
    /// What is wrong with files that change their names, as a sentence; nil if nothing is.
    private let others: @Sendable () -> String?

    /// Records the present files; after each commit, the first two and `others` are checked.
    init(
        _ paths: [String],
        in directories: [String],
        others: @escaping @Sendable () -> String? = { nil }
    ) {
        // First, so that no change goes unnoticed.
        names = NameWatch(directories)
        files = paths.map { File(path: $0, number: Number(of: $0)) }
        self.others = others
    }

    /// Which file is missing or replaced, as a sentence; nil if none is.
    ///
    /// - Complexity: One statx(2) for each, 1 µs.
    var finding: String? { finding(among: files[...]) }

    /// The same of the first two, which SQLite has open.
    var databaseFinding: String? { own(files[..<2]) }

    /// The same, if a name in one of the directories has changed since the last call.
    ///
    /// Called after each commit, by one thread.
    ///
    /// - Complexity: One ioctl(2), 0.25 µs, if no name in the directory has changed since the last
    ///   call.
    var commitFinding: String? {
        if let names, !names.haveChanged { return nil }
        return finding(among: files[..<2])
    }

    private func finding(among files: ArraySlice<File>) -> String? { own(files) ?? others() }

    private func own(_ files: ArraySlice<File>) -> String? {
        for file in files {
            guard let number = Number(of: file.path) else {
                return LostPlace.missing(file.path)
            }
            guard number == file.number else {
                return LostPlace.replaced(file.path, by: "file")
            }
        }
        return nil
    }
}

/// Chooses which files to check after a commit.
struct FileCheck {
    let files: StoreFiles
    private var commitCount = 0
    /// The time of the last check of all files, on the monotonic clock in nanoseconds.
    private var checkedAt: Int64 = 0

    init(_ files: StoreFiles) { self.files = files }

    /// Which file is missing or replaced, as a sentence; nil if none is.
    mutating func findingAfterCommit() -> String? {
        commitCount &+= 1
        let now = clinux_monotonic_nanoseconds()
        // Now and then also if no name is known to have changed.
        guard commitCount % 64 == 0 || now - checkedAt > 1_000_000_000 else {
            return files.commitFinding
        }
        checkedAt = now
        return files.finding
    }
}
