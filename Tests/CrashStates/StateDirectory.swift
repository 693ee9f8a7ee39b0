import CCrashRecorder
import Glibc

/// The directory that a recording was made in, which states are built in again.
///
/// A store knows its files by inode and time of birth, so a state consists of the very files of the
/// recording: they have a second name in `kept`, and are written anew. Only files of keys are new
/// each time: they have one name.
///
/// ```
/// root/d       what the daemon calls --data, and makes itself
/// root/app …   directories of rules, which stay
/// kept/        the files of root/d, as inode.born
/// s, c0.json5 …, log, record…
/// ```
struct StateDirectory {
    static let ruled = ["app", "box", "new"]

    let path: String
    /// What was there before the daemon was ever started.
    private(set) var present = StateDirectory.ruled

    init(path: String) { self.path = path }

    var root: String { "\(path)/root" }
    var kept: String { "\(path)/kept" }
    var data: String { "\(root)/d" }
    var socket: String { "\(path)/s" }
    var log: String { "\(path)/log" }

    /// Makes it, with the directory of the data unless the daemon is to make that itself.
    mutating func make(isEmpty: Bool) throws(Failure) {
        present = StateDirectory.ruled + (isEmpty ? [] : ["d"])
        for directory in [path, root, kept] + present.map({ "\(root)/\($0)" }) {
            guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
                throw .ofCall("mkdir \(directory)")
            }
        }
    }

    /// An empty model of it.
    func fileSystem(order: FileSystem.Order, ignored: String?) -> FileSystem {
        var system = FileSystem(root: root, order: order, ignored: ignored)
        for name in present { system.addDirectory(name) }
        return system
    }

    /// A model of it as a start finds a state: all of that is on stable storage.
    func fileSystem(of image: CrashImage, like other: FileSystem) -> FileSystem {
        var system = fileSystem(order: other.order, ignored: other.ignored)
        for path in image.directories where !present.contains(path) {
            system.addDirectory(path)
        }
        for file in image.files { system.addFile(file) }
        return system
    }

    /// Gives each file of the data a second name, which it keeps.
    func keepFiles() throws(Failure) {
        for name in Files.files(below: data) {
            var (inode, born): (UInt64, Int64) = (0, 0)
            let path = "\(data)/\(name)"
            guard recorder_identify(path, &inode, &born) == 0 else {
                throw .ofCall("statx \(path)")
            }
            guard link(path, "\(kept)/\(inode).\(born)") == 0 || errno == EEXIST else {
                throw .ofCall("link \(path)")
            }
        }
    }

    /// Makes a state of it.
    func build(_ image: CrashImage) throws(Failure) {
        for name in Files.names(in: root) {
            present.contains(name)
                ? Files.empty("\(root)/\(name)") : Files.remove("\(root)/\(name)")
        }
        for directory in image.directories where !present.contains(directory) {
            guard mkdir("\(root)/\(directory)", 0o700) == 0 else {
                throw .ofCall("mkdir \(directory)")
            }
        }
        for file in image.files { try build(file) }
    }

    private func build(_ file: CrashImage.File) throws(Failure) {
        let path = "\(root)/\(file.path)"
        if file.path.hasPrefix("d/"), let identity = file.identity {
            // One that is not there any more was made and lost again within one start, and nobody
            // knows it.
            if link("\(kept)/\(identity)", path) != 0, errno != ENOENT {
                throw .ofCall("link \(kept)/\(identity)")
            }
        }
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .ofCall("open \(path)") }
        defer { close(descriptor) }
        fchmod(descriptor, file.contents.mode)
        try StateDirectory.write(file.contents, to: descriptor, path)
        // The machine has started again since.
        if file.path == "d/stated.db-boot" { ftruncate(descriptor, 1) }
    }

    private static func write(
        _ contents: ModelFile.Contents,
        to descriptor: Int32,
        _ path: String
    ) throws(Failure) {
        let bytes = contents.bytes
        guard ftruncate(descriptor, 0) == 0, ftruncate(descriptor, off_t(bytes.count)) == 0 else {
            throw .ofCall("ftruncate \(path)")
        }
        let isWritten = bytes.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: 65_536).allSatisfy { start in
                let end = min(bytes.count, start + 65_536)
                return put(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), descriptor, start)
            }
        }
        guard isWritten else { throw .ofCall("pwrite \(path)") }
        try setAttributes(contents.attributes, of: descriptor, path)
    }

    /// Writes a part of a file that was cut to nothing; what is zero stays a hole.
    private static func put(
        _ part: UnsafeRawBufferPointer,
        _ descriptor: Int32,
        _ start: Int
    ) -> Bool {
        guard let first = part.baseAddress else { return true }
        if part[0] == 0, memcmp(first, first + 1, part.count - 1) == 0 { return true }
        return pwrite(descriptor, first, part.count, off_t(start)) == part.count
    }

    private static func setAttributes(
        _ attributes: [String: [UInt8]],
        of descriptor: Int32,
        _ path: String
    ) throws(Failure) {
        var list = [CChar](repeating: 0, count: 4_096)
        let count = flistxattr(descriptor, &list, list.count)
        for name in list.prefix(max(0, count)).split(separator: 0) {
            let name = String(decoding: name.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if attributes[name] == nil { fremovexattr(descriptor, name) }
        }
        for (name, value) in attributes
        where fsetxattr(descriptor, name, value, value.count, 0) != 0 {
            throw .ofCall("fsetxattr \(path)")
        }
    }
}

extension FileSystem {
    /// Adds a file that was there before, durably.
    mutating func addFile(_ file: CrashImage.File) {
        var parts = file.path.split(separator: "/")
        let name = String(parts.removeLast())
        guard let directory = self.file(at: "\(root)/\(parts.joined(separator: "/"))") else {
            return
        }
        let number = addFile(isDirectory: false)
        files[number].durable = file.contents
        files[number].byteCount = file.contents.bytes.count
        files[number].identity = file.identity
        names[directory]?[name] = number
        durableNames[directory]?[name] = number
    }
}
