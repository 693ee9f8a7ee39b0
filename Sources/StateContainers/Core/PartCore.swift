import CLinux
import StateEngine

/// The core of a part of another value.
///
/// While somebody observes the part, it follows the whole: it is changed under the lock of the
/// whole, so it is never older. Else it costs nothing, and is read in the whole.
final class PartCore<Whole: Sendable, Part: Equatable & Sendable>: StateCore<Part>,
    @unchecked Sendable
{
    private struct Following {
        var isOn = false
        /// Who needs it although the part has no queues: those that are about to add one, and
        /// whoever asked for a revision.
        var users = 0
        var hasAskedForRevision = false
    }

    // Constant, or under a lock: the proof of `@unchecked Sendable`.
    private let whole: StateCore<Whole>
    private let path: any KeyPath<Whole, Part> & Sendable
    private let queue: PartQueue<Whole, Part>
    /// Its lock is taken under that of the whole, or alone.
    private let following = StateLock(Following())

    init(of whole: StateCore<Whole>, at path: any KeyPath<Whole, Part> & Sendable) {
        whole.checkBody()
        self.whole = whole
        self.path = path
        queue = PartQueue(path)
        let (value, revision) = whole.latest()
        super.init(
            whole.marked { value[keyPath: path] },
            key: whole.key,
            revision: revision,
            isDirect: false,
            isTracked: true,
            isPart: true
        )
        queue.part = self
    }

    deinit { whole.end(queue) }

    // MARK: Reading

    override func latest() -> (value: Part, revision: Revision) {
        let (value, revision) = whole.latest()
        return (marked { value[keyPath: path] }, revision)
    }

    /// Tracked as a part of the whole, which outlives a part that is made to be read once.
    override func track<Member>(_ path: any KeyPath<Part, Member> & Sendable) {
        whole.track(joined(self.path, path))
    }

    /// The value, and the revision at which the part got it, or at which the first one asked.
    override var versioned: (value: Part, revision: Revision) {
        checkBody()
        keepFollowing()
        return published.withLock { ($0.value, $0.revision) }
    }

    /// Follows the whole from now on, so that the revisions of the part are known.
    func keepFollowing() {
        let isFirst = following.withLock { following in
            defer { following.hasAskedForRevision = true }
            return !following.hasAskedForRevision
        }
        if isFirst { begin() }
    }

    // MARK: Following

    override func adding<R>(_ body: () -> R) -> R {
        begin()
        defer { end(users: 1) }
        return body()
    }

    override func noteRemoval() {
        // In the body of a `modify` this thread may hold the lock of the whole.
        guard clinux_body() == nil else {
            return Notifier.shared.run(LateWork(key, "the end of following") { self.end(users: 0) })
        }
        end(users: 0)
    }

    private func begin() {
        // The part that it had before it stopped following, released after the locks.
        var replaced: Part?
        whole.adding {
            whole.published.withLock { published in
                let isNew = following.withLock { following in
                    following.users += 1
                    defer { following.isOn = true }
                    return !following.isOn
                }
                guard isNew else { return }
                published.add(queue)
                let value = marked { published.value[keyPath: path] }
                let revision = published.revision
                self.published.withLock { part in
                    replaced = part.value
                    part.value = value
                    (part.epoch, part.number) = (revision.epoch, revision.number)
                }
            }
        }
        withExtendedLifetime(replaced) {}
    }

    private func end(users: Int) {
        let hasEnded = whole.published.withLock { published in
            let isIdle = self.published.withLock { $0.queues.isEmpty }
            let ends = following.withLock { following in
                following.users -= users
                guard following.users == 0, isIdle, following.isOn else { return false }
                following.isOn = false
                return true
            }
            if ends { published.remove(queue) }
            return ends
        }
        if hasEnded { whole.noteRemoval() }
    }
}

extension StateCore {
    /// Removes a queue, on any thread.
    fileprivate final func end(_ queue: ChangeQueue) {
        guard clinux_body() == nil else {
            return Notifier.shared.run(
                LateWork(key, "the end of following") { self.unregister(queue) }
            )
        }
        unregister(queue)
    }

    /// Runs code from outside of the library while a lock is held: a container that it uses ends
    /// the process, instead of waiting forever.
    final func marked<R>(_ body: () -> R) -> R {
        guard clinux_body() == nil else { return body() }
        clinux_set_body(Unmanaged.passUnretained(self).toOpaque())
        defer { clinux_set_body(nil) }
        return body()
    }
}
