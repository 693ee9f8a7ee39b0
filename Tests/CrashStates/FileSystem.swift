import CCrashRecorder
import Glibc

/// What a power failure may leave: a file system that is told what was done, and keeps what was
/// synced apart from what was not.
///
/// ```
/// strict    a sync keeps the file that it is of, and of a directory the names; of the rest any
///           part may be there
/// journal   as ext4 does: names, lengths and attributes reach storage in their order, and each
///           sync takes all along that came before it, so a new file that is synced has its name;
///           bytes may be there or not, in sectors
/// ```
struct FileSystem {
    enum Order: String, CaseIterable { case strict, journal }

    /// Names that change together: one for each place in a directory.
    struct NameChange {
        let event: Int
        /// Nil takes the name away.
        var places: [(directory: Int, name: String, file: Int?)]
    }

    let order: Order
    /// Of files with this in their path a sync does nothing, of all with an empty text: then losses
    /// have to be found.
    let ignored: String?
    /// The directory that the paths of events begin with; file 0.
    let root: String
    var files: [ModelFile] = [ModelFile(isDirectory: true)]
    /// What the daemon sees in each directory, and what stable storage has.
    var names: [Int: [String: Int]] = [0: [:]]
    var durableNames: [Int: [String: Int]] = [0: [:]]
    var pendingNames: [NameChange] = []
    private var descriptors: [Int32: Int] = [:]
    /// What was opened while its name was being made or taken away by another thread: it is looked
    /// for when it is used.
    private var unresolved: [Int32: String] = [:]

    init(root: String, order: Order, ignored: String?) {
        self.root = root
        self.order = order
        self.ignored = ignored
    }

    /// A new process has no files open.
    mutating func beginLife() { (descriptors, unresolved) = ([:], [:]) }

    /// Adds a directory that was there before, durably.
    mutating func addDirectory(_ path: String) {
        guard let (parent, name) = place(of: "\(root)/\(path)") else { return }
        let number = addFile(isDirectory: true)
        names[parent]?[name] = number
        durableNames[parent]?[name] = number
    }

    mutating func addFile(isDirectory: Bool) -> Int {
        files.append(ModelFile(isDirectory: isDirectory))
        if isDirectory {
            names[files.count - 1] = [:]
            durableNames[files.count - 1] = [:]
        }
        return files.count - 1
    }

    // MARK: Paths

    /// The parts of a path below the root; nil for one elsewhere.
    private func parts(of path: String) -> [String]? {
        guard path == root || path.hasPrefix(root + "/") else { return nil }
        return path.dropFirst(root.count).split(separator: "/").map(String.init).filter {
            $0 != "."
        }
    }

    func file(at path: String) -> Int? {
        guard let parts = parts(of: path) else { return nil }
        var here = 0
        for part in parts {
            guard let next = names[here]?[part] else { return nil }
            here = next
        }
        return here
    }

    private func place(of path: String) -> (directory: Int, name: String)? {
        guard let parts = parts(of: path), let name = parts.last else { return nil }
        var here = 0
        for part in parts.dropLast() {
            guard let next = names[here]?[part] else { return nil }
            here = next
        }
        return (here, name)
    }

    // MARK: Events

    /// Does what an event did.
    ///
    /// - Throws: ``Failure`` for what is not understood: nothing may be left out.
    mutating func apply(_ event: Trace.Event, number: Int) throws(Failure) {
        let record = event.record
        switch event.kind {
        case RECORDER_OPEN: try didOpen(event, number)
        case RECORDER_CLOSE: forget(record.descriptor)
        case RECORDER_DUPLICATE:
            descriptors[record.result] = descriptors[record.descriptor]
        case RECORDER_ACCEPT: forget(record.result)
        case RECORDER_SYNC:
            guard let file = file(of: event) else { return }
            if !ignores(file) { sync(file, before: event.begun, isDataOnly: record.argument == 1) }
        case RECORDER_SYNC_ALL: if ignored == nil { syncAll(before: event.begun) }
        case RECORDER_RENAME, RECORDER_UNLINK, RECORDER_LINK, RECORDER_MAKE_DIRECTORY:
            try didName(event, number)
        case RECORDER_SEND: break
        case RECORDER_MAP:
            guard event.path.hasPrefix(root + "/"), !event.path.hasSuffix("-shm") else { return }
            throw Failure("the daemon maps \(event.path) to write to it: that is not recorded")
        case RECORDER_UNKNOWN:
            guard event.other.hasPrefix(root + "/") else { return }
            throw Failure("the daemon made a system call that is not known here: \(event.path)")
        default: didChange(event, number)
        }
    }

    private func ignores(_ file: Int) -> Bool {
        guard let ignored else { return false }
        let path = files[file].path
        return ignored.hasSuffix("$")
            ? path.hasSuffix(ignored.dropLast())
            : path.contains(ignored)
                || ignored.isEmpty
    }

    /// The file that an event is of, by its descriptor or its path.
    private func file(of event: Trace.Event) -> Int? {
        let descriptor = event.record.descriptor
        guard descriptor >= 0 else { return file(at: event.path) }
        return descriptors[descriptor] ?? unresolved[descriptor].flatMap { file(at: $0) }
    }

    private mutating func forget(_ descriptor: Int32) {
        descriptors[descriptor] = nil
        unresolved[descriptor] = nil
    }

    private mutating func didOpen(_ event: Trace.Event, _ number: Int) throws(Failure) {
        let record = event.record
        let isDirectory = record.mode & UInt32(S_IFMT) == UInt32(S_IFDIR)
        let flags = Int32(bitPattern: record.argument)
        forget(record.result)
        var found = file(at: event.path)
        if found == nil {
            guard let place = place(of: event.path), flags & O_CREAT != 0 else {
                guard flags & O_ACCMODE == O_RDONLY else {
                    throw Failure("\(event.path) was opened to be written, and is not known")
                }
                unresolved[record.result] = event.path
                return
            }
            let file = addFile(isDirectory: false)
            files[file].durable.mode = record.mode & 0o7777
            change([(place.directory, place.name, file)], number)
            found = file
        }
        guard let file = found else { return }
        files[file].path = event.path
        if !isDirectory { files[file].identity = "\(record.inode).\(record.born)" }
        if flags & O_TRUNC != 0, files[file].byteCount > 0 {
            files[file].add(.length(0), event: number)
        }
        let isPlaceOnly = flags & 0o10_000_000 != 0
        if !isPlaceOnly { descriptors[record.result] = file }
    }

    private mutating func didChange(_ event: Trace.Event, _ number: Int) {
        guard let file = file(of: event) else { return }
        let record = event.record
        let offset = Int(record.offset)
        switch event.kind {
        case RECORDER_WRITE where record.is_zero != 0:
            files[file].add(.zeros(offset: offset, count: Int(record.length)), event: number)
        case RECORDER_WRITE:
            files[file].add(.write(offset: offset, bytes: event.data), event: number)
        case RECORDER_TRUNCATE: files[file].add(.length(Int(record.length)), event: number)
        case RECORDER_ALLOCATE:
            // With the flag to keep the length nothing can be seen of it.
            let end = offset + Int(record.length)
            if record.argument == 0, end > files[file].byteCount {
                files[file].add(.length(end), event: number)
            }
        case RECORDER_SET_ATTRIBUTE:
            files[file].add(.attribute(event.other, event.data), event: number)
        case RECORDER_REMOVE_ATTRIBUTE:
            files[file].add(.attribute(event.other, nil), event: number)
        case RECORDER_MODE: files[file].add(.mode(record.mode & 0o7777), event: number)
        default: break
        }
    }

    private mutating func didName(_ event: Trace.Event, _ number: Int) throws(Failure) {
        guard let place = place(of: event.path) else { return }
        let file = names[place.directory]?[place.name]
        switch event.kind {
        case RECORDER_MAKE_DIRECTORY:
            let new = addFile(isDirectory: true)
            files[new].durable.mode = event.record.mode
            change([(place.directory, place.name, new)], number)
        case RECORDER_UNLINK: change([(place.directory, place.name, nil)], number)
        case RECORDER_LINK:
            guard let target = self.place(of: event.other) else { return }
            change([(target.directory, target.name, file)], number)
        default:
            guard let target = self.place(of: event.other), let file else {
                throw Failure("\(event.path) was renamed to \(event.other), and is not known")
            }
            // RENAME_EXCHANGE, https://man7.org/linux/man-pages/man2/rename.2.html
            let isExchange = event.record.argument & 2 != 0
            let other = names[target.directory]?[target.name]
            change(
                [
                    (place.directory, place.name, isExchange ? other : nil),
                    (target.directory, target.name, file),
                ],
                number
            )
        }
    }

    private mutating func change(
        _ places: [(directory: Int, name: String, file: Int?)],
        _ number: Int
    ) {
        for place in places { names[place.directory]?[place.name] = place.file }
        pendingNames.append(NameChange(event: number, places: places))
    }
}
