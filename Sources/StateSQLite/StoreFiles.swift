import Glibc
import StateEngine

/// The files of an open store, by what they were when it was opened.
///
/// Whoever removes or replaces them leaves the process with files that have no name: it would go on and acknowledge commits that
/// no start finds.
struct StoreFiles: Sendable {
    private struct File {
        let path: String
        let device: dev_t
        let inode: ino_t
    }

    private let files: [File]

    /// Notes the files that are there now: the database, its log, and its mark.
    init(_ location: StoreLocation) {
        files = [location.database, location.log, location.mark].map { path in
            var status = stat()
            // No file has the inode 0, so one that is not there never is in its place.
            _ = lstat(path, &status)
            return File(path: path, device: status.st_dev, inode: status.st_ino)
        }
    }

    /// Which file is not in its place any more, in a sentence; nil if all are.
    ///
    /// - Complexity: one lstat(2) for each, 2 µs together.
    var finding: String? {
        for file in files {
            var status = stat()
            guard lstat(file.path, &status) == 0 else {
                return "\(file.path) is gone (\(lastSystemError())): what is written would be lost"
            }
            guard status.st_dev == file.device, status.st_ino == file.inode else {
                return "\(file.path) was replaced by another file: what is written would be lost"
            }
        }
        return nil
    }
}
