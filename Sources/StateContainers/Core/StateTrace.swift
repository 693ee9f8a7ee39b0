public import StateEngine
import Synchronization

/// Events inside the containers of this process, for finding faults; off until ``hook`` is set.
///
/// Events contain keys and revisions, never values, so they do not reveal protected values.
public enum StateTrace {
    /// An event.
    ///
    /// Cases may be added, so a `switch` needs a `default`.
    public enum Event: Hashable, Sendable {
        /// A container is about to deliver a change.
        case change(Key, Revision)
        /// A listener or a `didModify` has been running for over a second. Reported once for each
        /// call; `who` is its type or its place in the source.
        case slow(Key, who: String)
        /// A failure that could not be thrown to a caller.
        case failure(Key, StateError.Code)
    }

    /// Called with each event, on the thread where it happens.
    ///
    /// It must not block, and must not use any container.
    ///
    /// - Complexity: While it is nil, an event costs about a nanosecond.
    public static var hook: (@Sendable (Event) -> Void)? {
        get { current.withLock { $0 }?.call }
        set {
            let hook = newValue.map { Hook(call: $0) }
            let old = current.withLock { current in
                defer { current = hook }
                return current
            }
            // Released here: what the old hook captured may use anything when it goes.
            withExtendedLifetime(old) {}
            isOn.store(newValue != nil, ordering: .releasing)
            if newValue != nil { Notifier.shared.watch() }
        }
    }

    private static let isOn = Atomic(false)
    private static let current = StateLock<Hook?>(nil)

    // A structure, because a function that is read out of a lock is wrapped in two more, each time:
    // https://github.com/swiftlang/swift/issues/91348
    private struct Hook: Sendable {
        let call: @Sendable (Event) -> Void
    }

    /// Whether a hook is set.
    static var isEnabled: Bool { isOn.load(ordering: .relaxed) }

    /// Calls the hook, if there is one.
    package static func note(_ event: @autoclosure () -> Event) {
        if isEnabled { current.withLock { $0 }?.call(event()) }
    }
}
