import Observation
import StateEngine
import Synchronization

/// Reports the changes of a value, and of the parts of it that are read, to the Observation
/// library.
final class Tracker<Value: Sendable>: Sendable, Observable {
    /// How many parts it distinguishes; a further one counts as the whole value.
    private static var partLimit: Int { 256 }

    /// A part that was read.
    private struct Part: Sendable {
        let isChanged: @Sendable (Value, Value) -> Bool
        let report: @Sendable (Tracker) -> Void
    }

    private let registrar = ObservationRegistrar()
    private let parts = StateLock<[PathID: Part]>([:])
    /// The view that was made last.
    private let view = StateLock(WeakView())

    private struct WeakView: Sendable {
        weak var view: (any AnyObject & Sendable)?
    }

    /// Records that the caller reads the part at `path`.
    func access<Member>(_ path: any KeyPath<Value, Member> & Sendable) {
        if path == \Value.self || !register(path) {
            registrar.access(self, keyPath: \.whole)
        } else {
            registrar.access(self, keyPath: \.[part: path])
        }
    }

    /// Reports a change, which every thread can read by now.
    func put(_ change: ChangeRecord) {
        let change = StateChange<Value>(change)
        registrar.withMutation(of: self, keyPath: \.whole) {}
        for part in parts.withLock({ Array($0.values) })
        where part.isChanged(change.old, change.new) {
            part.report(self)
        }
    }

    /// The view that was made last, if it still exists and is of this type; else a new one.
    func view<View: AnyObject & Sendable>(_ make: () -> View) -> View {
        view.withLock { weak in
            if let present = weak.view as? View { return present }
            let made = make()
            weak.view = made
            return made
        }
    }

    private func register<Member>(_ path: any KeyPath<Value, Member> & Sendable) -> Bool {
        parts.withLock { parts in
            if parts[PathID(path: path)] != nil { return true }
            guard parts.count < Tracker.partLimit else { return false }
            parts[PathID(path: path)] = Part {
                !areEqual($0[keyPath: path], $1[keyPath: path])
            } report: {
                $0.registrar.withMutation(of: $0, keyPath: \.[part: path]) {}
            }
            return true
        }
    }

    /// The names of the value and its parts for the registrar, which never reads them.
    private var whole: Void { () }

    private subscript<Member>(part path: any KeyPath<Value, Member> & Sendable) -> Member {
        preconditionFailure("the part at \(path) is only a name")
    }
}

/// The path of a part of a part.
func joined<Root, Part, Member>(
    _ path: any KeyPath<Root, Part> & Sendable,
    _ inner: any KeyPath<Part, Member> & Sendable
) -> any KeyPath<Root, Member> & Sendable {
    let whole = (path as KeyPath<Root, Part>).appending(path: inner as KeyPath<Part, Member>)
    // It captures what the two capture, which are `Sendable`; that word changes no representation.
    return unsafeBitCast(whole, to: (any KeyPath<Root, Member> & Sendable).self)
}

/// A key path of any part.
struct PathID: Hashable, Sendable {
    let path: any AnyKeyPath & Sendable

    static func == (left: PathID, right: PathID) -> Bool {
        (left.path as AnyKeyPath) == (right.path as AnyKeyPath)
    }

    func hash(into hasher: inout Hasher) { (path as AnyKeyPath).hash(into: &hasher) }
}

/// Finds out whether what the calling thread reads is tracked.
///
/// The Observation library does not say so. But where it tracks, it puts the key path of an access
/// into a set, and so asks for the hash of its arguments.
final class TrackingProbe: Observable, Sendable {
    private struct Argument: Hashable, Sendable {
        static let count = Atomic(0)

        func hash(into hasher: inout Hasher) { Argument.count.add(1, ordering: .relaxed) }
    }

    private static let probe = TrackingProbe()
    private static let path: any KeyPath<TrackingProbe, Void> & Sendable = \.[Argument()]
    private let registrar = ObservationRegistrar()

    /// Whether the thread is in `withObservationTracking` or the like.
    ///
    /// It may also be true if another thread is, which does no harm.
    static var isTracking: Bool {
        let before = Argument.count.load(ordering: .relaxed)
        probe.registrar.access(probe, keyPath: path)
        return Argument.count.load(ordering: .relaxed) != before
    }

    private subscript(_ argument: Argument) -> Void { () }
}

/// The queue of the changes to a tracker.
private final class TrackingQueue<Value: Sendable>: ChangeQueue, @unchecked Sendable {
    let tracker = Tracker<Value>()

    init(_ key: Key) {
        super.init(scope: nil)
        connect(key) { [tracker] in tracker.put($0) }
    }
}

extension StateCore {
    /// The tracker, made on first access; from then on changes are published.
    final var tracker: Tracker<Value> {
        checkBody()
        return adding {
            published.withLock { published in
                for queue in published.queues {
                    if let queue = queue as? TrackingQueue<Value> { return queue.tracker }
                }
                let queue = TrackingQueue<Value>(key)
                published.add(queue)
                return queue.tracker
            }
        }
    }
}

extension StateContainer {
    /// The part at `path`, noted as read for the Observation library.
    package final func observedValue<Member>(
        _ path: any KeyPath<Value, Member> & Sendable
    ) -> Member {
        core.track(path)
        return withCore { $0.readInPlace { $0[keyPath: path] } }
    }
}

/// Whether two values are `Equatable` and equal.
package func areEqual<Value>(_ left: Value, _ right: Value) -> Bool {
    func isEqual<Comparable: Equatable>(_ left: Comparable) -> Bool {
        (right as? Comparable).map { $0 == left } ?? false
    }
    guard let left = left as? any Equatable else { return false }
    return isEqual(left)
}
