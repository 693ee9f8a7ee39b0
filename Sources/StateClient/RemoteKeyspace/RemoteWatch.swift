import StateModel

/// A watch of a ``RemoteKeyspace``, as callers see it; it ends with its last reference.
final class RemoteWatch: KeyspaceWatch {
    private let link: RemoteLink
    private let keys: WatchedKeys

    init(_ link: RemoteLink, _ receive: @escaping @Sendable (KeyspaceEvent) -> Void) {
        self.link = link
        keys = WatchedKeys(receive)
        link.retain()
        link.attend(to: keys)
    }

    deinit {
        cancel()
        link.release()
    }

    func include(_ patterns: [Pattern]) {
        keys.include(patterns)
        link.attend(to: keys)
    }

    func exclude(_ patterns: [Pattern]) {
        keys.exclude(patterns)
        link.attend(to: keys)
    }

    func cancel() {
        if keys.cancel() { link.attend(to: keys) }
    }
}
