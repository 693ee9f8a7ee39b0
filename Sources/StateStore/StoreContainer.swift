package import StateContainers
import StateEngine

/// The container of a store's state, whichever errors its changes can throw.
package protocol StoreContainer<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable

    var value: Value { get }
    var values: StateValues<Value> { get }
    func withValue<R, E: Error>(_ body: (borrowing Value) throws(E) -> R) throws(E) -> R
    func observedValue<Member>(_ path: any KeyPath<Value, Member> & Sendable) -> Member
    func change<R>(
        because reason: @autoclosure () -> String,
        _ body: (inout Value) -> R
    ) throws -> (result: R, revision: Revision)
    func part<Part: Equatable & Sendable>(
        _ path: any WritableKeyPath<Value, Part> & Sendable
    ) -> StoreStates<Part>
}

extension MonitoredContainer: StoreContainer {
    package func part<Part: Equatable & Sendable>(
        _ path: any WritableKeyPath<Value, Part> & Sendable
    ) -> StoreStates<Part> {
        StoreStates(scope(path).values)
    }
}
