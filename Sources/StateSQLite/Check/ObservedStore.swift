import CSQLite
import StateEngine
import StatePlatform

/// A store that is read without being owned: no file is changed or created.
///
/// There are three ways to open it, because SQLite would create a log of its own, or move one
/// into the database, if it found none in use:
///
/// ```
/// a process owns it      like any concurrent reader, through the index of the log that they share
/// no owner, no log       as a file that does not change (immutable=1): no locks, no log
/// no owner, a log        without locks, with the index of the log in memory, so that the log is
///                        read and kept (locking_mode=EXCLUSIVE before the first read:
///                        https://www.sqlite.org/wal.html#noshm)
/// ```
///
/// The latter two rely on nobody writing meanwhile, which ``requireUnchanged()`` checks afterwards.
/// Taking the owner's lock instead was rejected: a check must not keep a daemon from starting.
package final class ObservedStore {
    let connection: SQLiteConnection
    /// The other process that owns the store, as words; nil if nobody else does.
    let owner: String?
    /// That of the caller, if it owns the store.
    private let lock: OwnerLock?

    private let location: StoreLocation
    private let footprints: [Footprint?]

    /// Opens the store.
    ///
    /// - Parameters:
    ///   - location: Its files.
    ///   - lock: The lock of a caller who owns it; nobody else does then.
    /// - Throws: ``StateError/Code/storage`` if there is none; SQLite's error.
    init(_ location: StoreLocation, under lock: OwnerLock? = nil) throws {
        self.location = location
        self.lock = lock
        guard FileIdentity(path: location.database) != nil else {
            throw try ObservedStore.absence(of: location)
        }
        try location.requirePage()
        owner = lock == nil ? try OwnerLock.owner(of: location) : nil
        footprints = ObservedStore.footprints(of: location)
        let path = location.database
        let name = ObservedStore.uri(path)
        if owner != nil {
            connection = try SQLiteConnection(path: path, reading: name)
        } else if fileByteCount(location.log) ?? 0 > 0 || fileByteCount(path + "-journal") ?? 0 > 0
        {
            connection = try SQLiteConnection(path: path, reading: name, system: "unix-none")
            try connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        } else {
            connection = try SQLiteConnection(path: path, reading: name + "?immutable=1")
        }
        try connection.set("cache_size=-4096", "trusted_schema=OFF")
    }

    /// Why there is no database.
    static func absence(of location: StoreLocation) throws(StateError) -> StateError {
        let reason = lastSystemError()
        if FileIdentity(path: location.log) != nil {
            return .damaged(location.database, "it is missing, but its log exists")
        }
        return StateError(.storage, "there is no store at \(location.database): \(reason)")
    }

    /// Checks that what was read was one state: the owner's transactions, or files that nobody
    /// changed.
    ///
    /// - Throws: ``StateError/Code/storage``, if a process that started meanwhile has written.
    func requireUnchanged() throws(StateError) {
        guard owner == nil else { return }
        let other = lock == nil ? try OwnerLock.owner(of: location) : nil
        guard other == nil, ObservedStore.footprints(of: location) == footprints
        else {
            throw StateError(
                .storage,
                "\(location.database) was changed by another process meanwhile; try again"
            )
        }
    }

    /// The facts that change with a file's contents.
    package struct Footprint: Hashable {
        private let inode: UInt
        private let byteCount: Int
        private let seconds: Int
        private let nanoseconds: Int

        package init?(path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            inode = UInt(status.st_ino)
            byteCount = Int(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    /// The footprints of the database and its log.
    package static func footprints(of location: StoreLocation) -> [Footprint?] {
        [Footprint(path: location.database), Footprint(path: location.log)]
    }

    /// A path as a URI for SQLite. https://www.sqlite.org/uri.html
    private static func uri(_ path: String) -> String {
        var uri = path.hasPrefix("/") ? "file://" : "file:"
        for character in path.unicodeScalars {
            switch character {
            case "%": uri += "%25"
            case "?": uri += "%3f"
            case "#": uri += "%23"
            default: uri.unicodeScalars.append(character)
            }
        }
        return uri
    }
}

extension OwnerLock {
    /// The owner of a store, as words; nil if nobody owns it.
    fileprivate static func owner(of location: StoreLocation) throws(StateError) -> String? {
        try owner(path: location.lock, of: location.database)
    }
}
