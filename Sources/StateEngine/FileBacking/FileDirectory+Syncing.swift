import CLinux
import StatePlatform
import StateSystem

/// Files that others have written and that are not durable yet, by path, with their status as they
/// were read; nil for one that is gone.
struct FileSyncs {
    typealias Files = [FilePath: FileStatus?]

    /// The next sync of the file system makes them durable.
    fileprivate var waiting: Files = [:]
    /// The sync that runs, and what it makes durable.
    fileprivate var running: (sync: FileSystemSync, files: Files)?
    /// They are durable, and read again before they are adopted.
    fileprivate var durable: Files = [:]

    /// So many wait at most, and so many are remembered as durable.
    fileprivate static let limit = 16_384

    init() {}

    var isPending: Bool { running != nil || !waiting.isEmpty }

    /// Whether a file is durable as it was read now.
    fileprivate mutating func isDurable(_ file: FoundFile) -> Bool {
        guard !durable.isEmpty, let status = durable.removeValue(forKey: file.path) else {
            return false
        }
        return status?.stamp == file.status?.stamp && status?.changed == file.status?.changed
    }

    fileprivate mutating func begin(_ tree: FileTree, _ watcher: FileWatcher) {
        guard running == nil, !waiting.isEmpty else { return }
        running = (FileSystemSync(tree.root) { [weak watcher] in watcher?.wakeForLook() }, waiting)
        waiting = [:]
    }
}

/// Makes durable what others have written, before it is adopted: a key must not have a value that a
/// power failure takes from its file.
///
/// A few files are synced one by one. More of them wait for one sync of the file system, on another
/// thread, and are read again then. Rejected: to sync each of many, because each takes a flush of
/// the disk, even if nothing is left to write.
extension FileDirectory {
    /// Above so many files, and directories, the others wait for a sync of the file system.
    private static let fewCount = 8

    /// Makes files durable that were read: their contents, then their names.
    ///
    /// - Parameters:
    ///   - found: What was read.
    ///   - isOver: Returns true if no other file is to be synced now; the first always is.
    /// - Returns: The files that are durable as they were read. The others are looked at again, or
    ///   refused if they cannot be synced.
    /// - Complexity: A sync for each of at most 8 files, and of the directories on the way to them;
    ///   and for those that commands wait for.
    func synced(_ found: [FoundFile], until isOver: () -> Bool) -> [FoundFile] {
        guard !found.isEmpty else { return [] }
        var (ready, rest): ([FoundFile], [FoundFile]) = ([], [])
        for file in found {
            if syncs.isDurable(file) { ready.append(file) } else { rest.append(file) }
        }
        let isFew = rest.count <= FileDirectory.fewCount
        let walk = tree.walk()
        var (now, directories): ([FoundFile], Set<FilePath>) = ([], [])
        for file in rest {
            let isRoom = directories.count < FileDirectory.fewCount && !isOver()
            guard isFew || wanted.paths.contains(file.path), now.isEmpty || isRoom else {
                leave(file)
                continue
            }
            guard sync(file, walk) else { continue }
            now.append(file)
            directories.formUnion(FileDirectory.directories(of: file))
        }
        syncs.begin(tree, watcher)
        return ready + withNames(now, directories, walk)
    }

    /// The same at a start: many files wait for the sync of the file system for at most a second, and
    /// are looked at later if it takes longer.
    func syncedAtStart(_ found: [FoundFile]) -> [FoundFile] {
        guard found.count > FileDirectory.fewCount else { return synced(found) { false } }
        for file in found { syncs.waiting[file.path] = .some(file.status) }
        syncs.begin(tree, watcher)
        guard let running = syncs.running, running.sync.wait(nanoseconds: 1_000_000_000) == 0 else {
            for file in found { known[file.path] = file.before }
            return []
        }
        syncs.running = nil
        return found
    }

    /// Makes the names of files durable that are gone.
    ///
    /// - Returns: Those whose directories were synced; after a failure the others are refused.
    func syncedRemovals(_ found: [FoundFile]) -> [FoundFile] {
        withNames(found, Set(found.flatMap(FileDirectory.directories)), tree.walk())
    }

    /// Has the files looked at again that a sync of the file system has made durable, and begins the
    /// next one.
    func takeSynced() {
        if let (sync, files) = syncs.running, let code = sync.code {
            syncs.running = nil
            if syncs.durable.count > FileSyncs.limit { syncs.durable = [:] }
            for (path, status) in files {
                guard code == 0 else {
                    let failure = FileFailure("syncfs", path, code)
                    refuse(path, StateError(.storage, failure.sentence))
                    continue
                }
                syncs.durable[path] = .some(status)
                putBack(path, isWritten: true)
            }
        }
        syncs.begin(tree, watcher)
    }

    /// Leaves a file to the next sync of the file system; no commit touches it until it is adopted.
    private func leave(_ file: FoundFile) {
        known[file.path] = file.before
        wanted.paths.remove(file.path)
        if syncs.waiting.count < FileSyncs.limit {
            syncs.waiting[file.path] = .some(file.status)
        } else {
            watcher.note([FileWatcher.Place(path: file.path)], after: 1_000_000_000)
        }
    }

    /// Syncs the contents of a file.
    ///
    /// - Returns: False if it was changed meanwhile, and is looked at again, or cannot be synced, and
    ///   is refused.
    private func sync(_ file: FoundFile, _ walk: FileTree) -> Bool {
        guard let status = file.status else { return true }
        do throws(FileFailure) {
            if try walk.sync(file.path, as: status) { return true }
            known[file.path] = file.before
            watcher.note([FileWatcher.Place(path: file.path)])
        } catch {
            refuse(file, error)
        }
        return false
    }

    /// The directories whose names a file needs; those above may be new, like the file.
    private static func directories(of file: FoundFile) -> [FilePath] {
        file.before == nil && file.status != nil ? file.path.ancestors : [file.path.parent]
    }

    /// Syncs directories, after the contents of all files in them; if one is gone, the nearest above
    /// it, which had its name.
    ///
    /// - Returns: The files whose names are durable; the others are refused.
    private func withNames(
        _ files: [FoundFile],
        _ directories: Set<FilePath>,
        _ walk: FileTree
    ) -> [FoundFile] {
        var failures: [FilePath: FileFailure] = [:]
        var synced: Set<FilePath> = []
        for path in directories.sorted() {
            do throws(FileFailure) {
                let nearest = try walk.nearestDirectory(to: path).directory
                if synced.insert(nearest).inserted { try walk.directory(nearest).sync() }
            } catch {
                failures[path] = error
            }
        }
        guard !failures.isEmpty else { return files }
        return files.filter { file in
            let failure = FileDirectory.directories(of: file).lazy.compactMap { failures[$0] }.first
            if let failure { refuse(file, failure) }
            return failure == nil
        }
    }

    private func refuse(_ file: FoundFile, _ failure: FileFailure) {
        known[file.path] = file.before
        refuse(file.path, StateError(.storage, failure.sentence))
    }

    /// Makes the names in the directories of `paths` durable.
    func syncParents(of paths: some Sequence<FilePath>) {
        let walk = tree.walk()
        for parent in Set(paths.map(\.parent)).sorted() { try? walk.directory(parent).sync() }
    }
}
