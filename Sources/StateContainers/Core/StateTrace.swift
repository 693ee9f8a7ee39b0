public import StateEngine
import Synchronization

/// What happens inside the containers of this process, for who looks for a fault; off until ``hook`` is set.
///
/// Keys and revisions only, never a value: a protected one does not come out this way.
public enum StateTrace {
    /// What happened; more may come, so a `switch` has a `default`.
    public enum Event: Hashable, Sendable {
        /// A change that a container is about to tell of.
        case change(Key, Revision)
        /// A listener or a `didModify` has been at work for over a second; said once for each call, by the name of its type or
        /// its place in the source.
        case slow(Key, who: String)
        /// A failure that no caller was given.
        case failure(Key, StateError.Code)
    }

    /// Is called with each event, on whatever thread it happens; it must not block, and may touch no container.
    ///
    /// - Complexity: While it is nil an event costs about a nanosecond.
    public static var hook: (@Sendable (Event) -> Void)? {
        get { current.withLock { $0 } }
        set {
            current.withLock { $0 = newValue }
            isOn.store(newValue != nil, ordering: .releasing)
            if newValue != nil { Notifier.shared.watch() }
        }
    }

    private static let isOn = Atomic(false)
    private static let current = StateLock<(@Sendable (Event) -> Void)?>(nil)

    /// Whether somebody looks.
    static var isWanted: Bool { isOn.load(ordering: .relaxed) }

    /// Tells the hook, where there is one.
    package static func note(_ event: @autoclosure () -> Event) {
        if isWanted { hook?(event()) }
    }
}
