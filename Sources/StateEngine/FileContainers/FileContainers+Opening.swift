import Glibc

/// The start: files and entries are brought together.
extension FileContainers {
    /// Opens every directory; what was half done by the last process is finished, what differs is handed to the keyspace.
    func open(_ marks: any FileMarkBacking, _ keyspace: LocalKeyspace) throws {
        try FileContainers.checkOverlaps(containers.map(\.location))
        let note = try marks.fileContainers()
        let former = FormerFiles(note)
        for container in containers {
            let hasFiles = keys(of: container, in: keyspace).contains { key in
                container.heldFile(of: key, former)
            }
            try container.open(expectsFiles: hasFiles, wake)
        }
        try settle(marks.takeFileMark()) { keyspace.entry(for: $0)?.value }
        for container in containers {
            settleUnpublished(of: container, keyspace)
            container.keepUnpublished()
            let found = compare(container, with: keyspace) { container.heldFile(of: $0, former) }
            try export(container, keyspace) { !container.heldFile(of: $0, former) }
            adopt(found, of: container, into: keyspace)
            container.files?.watcher.finishLook()
        }
        let now = FormerFiles.note(rules)
        if now != note { try marks.setFileContainers(now) }
        FileContainers.removeLeft(former, now: self, in: keyspace, notice)
    }

    /// Goes on where others have ended, before it is opened.
    ///
    /// What could not be written to the same directories is tried again, and edits on their way to storage are known.
    func takeOver(_ old: FileContainers) {
        hasMark = hasMark || old.hasMark
        for container in containers {
            guard let before = old.containers.first(where: { $0.location == container.location })
            else { continue }
            container.takeOver(before)
        }
    }

    /// Finishes what a commit had not reached, by the mark that it left in the store.
    ///
    /// - Parameters:
    ///   - text: The mark; nil where there is none.
    ///   - value: What the store says of a key.
    /// - Throws: ``StateError/Code/corrupt``, where it is no mark.
    func settle(_ text: String?, value: (Key) -> [UInt8]?) throws(StateError) {
        guard let text else { return }
        hasMark = true
        guard let mark = FileMark(text) else {
            throw StateError(
                .corrupt,
                "what the store notes of files that are not written cannot be read"
            )
        }
        for (key, old) in mark.entries {
            guard let key = try? Key(bytes: key),
                let container = key.bytes.withUnsafeBytes({ container(of: $0) }),
                let path = try? key.bytes.withBorrowed(container.path)
            else { continue }
            if !container.settle(path, old: old, to: value(key)) {
                container.leaveUnpublished(
                    path,
                    old: old,
                    "it was not written before the last stop"
                )
            }
        }
        wakeForRetries()
    }

    /// Writes those of the keys that storage keeps, have no file, and had none here before.
    private func export(
        _ container: FileContainer,
        _ keyspace: LocalKeyspace,
        where isNew: (Key) -> Bool
    ) throws {
        for key in keys(of: container, in: keyspace) where isNew(key) {
            let path = try key.bytes.withBorrowed(container.path)
            guard let files = container.files, files.known[path] == nil, keyspace.isStored(key),
                let value = keyspace.entry(for: key)?.value
            else { continue }
            guard container.settle(path, old: nil, to: value) else {
                throw StateError(
                    .storage,
                    "key '\(key)' cannot be written to \(container.shown(path)): "
                        + (container.unpublished[path]?.reason ?? "something else is there")
                )
            }
        }
    }

    /// Refuses directories one of which is in another, also by way of links.
    package static func checkOverlaps(_ directories: [String]) throws(StateError) {
        let resolved = directories.map { directory -> [Substring] in
            guard let path = realpath(directory, nil) else { return parts(directory) }
            defer { free(path) }
            return parts(String(cString: path))
        }
        for (index, mine) in resolved.enumerated() {
            for (other, theirs) in resolved[..<index].enumerated()
            where mine.starts(with: theirs) || theirs.starts(with: mine) {
                throw StateError(
                    .err,
                    "the directories \(directories[other]) and \(directories[index]) overlap; each rule needs one of its own"
                )
            }
        }
    }

    private static func parts(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }
    }

    /// Refuses directories that this process could not use.
    ///
    /// - Throws: ``StateError/Code/err``, naming the directory.
    package func check() throws(StateError) {
        do {
            try FileContainers.checkOverlaps(containers.map(\.location))
            for container in containers { try container.check() }
        } catch {
            throw StateError(.err, (error as? StateError)?.message ?? "\(error)")
        }
    }
}

extension FileContainer {
    /// Whether a key had its file here when the store was last open.
    func heldFile(of key: Key, _ former: FormerFiles) -> Bool {
        key.bytes.withUnsafeBytes { former.directory(of: $0) } == location
    }

    /// Whether the directory could be used; nothing is made in it.
    func check() throws {
        guard DirectoryIdentity(path: location) != nil else { throw missing() }
        let tree = try FileTree(location)
        try tree.checkAccess(location, isShared: isShared)
        guard faccessat(AT_FDCWD, location, W_OK | X_OK, AT_EACCESS) == 0 else {
            throw FileContainer.unusable(location, FileFailure("access", .root))
        }
    }

    func missing() -> StateError {
        let reason = access(location, F_OK) == 0 ? "it is no directory" : lastSystemError()
        return StateError(.storage, "the directory \(location) cannot be used: \(reason)")
    }
}
