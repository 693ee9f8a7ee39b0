/// Who is told of the changes that a container takes.
package final class ListenerList<Value: Sendable>: Sendable {
    package init() {}

    package func tell(_ change: StateChange<Value>) {}
}
