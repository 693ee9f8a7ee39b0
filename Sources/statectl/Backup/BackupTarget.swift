import CLinux
import Glibc
import StateModel
import StateSystem

/// The file that a backup is written to, under another name until it is whole.
///
/// Only a file is replaced, or what does not exist: a device, a pipe or a link is written to, unless
/// everything is to be replaced.
final class BackupTarget {
    private let path: String
    /// The other name; nil if the file itself is written to.
    private let draft: String?
    private let descriptor: Int32
    private(set) var byteCount: Int64 = 0
    private var isFinished = false

    /// Opens it; `-` is standard output.
    ///
    /// - Parameters:
    ///   - name: The file.
    ///   - mode: Its permissions, whatever the umask.
    ///   - replacesAll: A link is replaced, not followed: others may have put it there.
    /// - Throws: ``Failure/output(_:)`` if it cannot be opened.
    init(
        _ name: [UInt8],
        mode: mode_t = 0o600,
        replacesAll: Bool = false
    ) throws(Failure) {
        let isOutput = name == "-".bytes
        path = isOutput ? "standard output" : String(decoding: name, as: UTF8.self)
        guard !isOutput else {
            guard isatty(STDOUT_FILENO) == 0 else {
                throw .usage("backup: a backup is not text; write it to a file or a pipe")
            }
            (draft, descriptor) = (nil, STDOUT_FILENO)
            return
        }
        var status = stat()
        let isReplaced =
            replacesAll || lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
        draft = isReplaced ? "\(path).\(processNumber).new" : nil
        if let draft {
            // A signal may come as soon as the file is there.
            clinux_remove_drafts_on_signals()
            clinux_draft(AT_FDCWD, draft, 0)
        }
        guard let draft else {
            do throws(OpenFailure) {
                descriptor = try NamedFile.open(path, O_WRONLY | O_TRUNC, as: .stream)
            } catch {
                throw .output(error.sentence(path, "written"))
            }
            return
        }
        descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0, fchmod(descriptor, mode) == 0 else {
            let failure = Failure.output("\(draft) cannot be written: \(lastError)")
            clinux_forget_drafts()
            throw failure
        }
    }

    /// Whether a backup named so would take the place of an earlier one, also by another spelling,
    /// a link or a redirection; `-` is standard output for one and standard input for the other.
    static func isSameFile(_ name: [UInt8], _ earlier: String) -> Bool {
        let path = String(decoding: name, as: UTF8.self)
        var (new, old) = (stat(), stat())
        guard (path == "-" ? fstat(STDOUT_FILENO, &new) : stat(path, &new)) == 0,
            (earlier == "-" ? fstat(STDIN_FILENO, &old) : stat(earlier, &old)) == 0
        else { return false }
        return old.st_mode & S_IFMT == S_IFREG && new.st_dev == old.st_dev
            && new.st_ino == old.st_ino
    }

    /// Removes what is not whole.
    deinit {
        if descriptor != STDOUT_FILENO { close(descriptor) }
        if let draft, !isFinished { unlink(draft) }
        if draft != nil { clinux_forget_drafts() }
    }

    func write(_ bytes: [UInt8]) throws(Failure) {
        let number = writeAll(bytes, to: descriptor)
        guard number == 0 else { throw failed(number) }
        byteCount += Int64(bytes.count)
    }

    /// Makes the file durable under its name.
    func finish() throws(Failure) {
        guard let draft else {
            // What cannot be synced, such as a pipe, says so with EINVAL.
            if fsync(descriptor) != 0, errno != EINVAL, errno != EROFS { throw failed(errno) }
            return
        }
        guard fsync(descriptor) == 0, rename(draft, path) == 0 else { throw failed(errno) }
        isFinished = true
        clinux_forget_drafts()
        let slash = path.lastIndex(of: "/")
        let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw failed(errno) }
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw failed(errno) }
    }

    private func failed(_ number: Int32) -> Failure {
        let reason = number == EBADF ? "it is closed" : String(cString: strerror(number))
        return .output("\(path) cannot be written: \(reason)")
    }
}
