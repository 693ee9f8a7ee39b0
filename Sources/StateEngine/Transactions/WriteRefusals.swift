/// Why writes are refused for now, whatever they are about.
package struct WriteRefusals: ~Copyable {
    /// The keyspace is closed: nothing is written any more.
    var closure: StateError?
    /// The store is opened again after a commit whose outcome is unknown: no stored key is written.
    package internal(set) var reopening: StateError?
    /// The disk is full: no stored key is set, though keys are deleted.
    package internal(set) var diskShortage: StateError?
    /// The process may have no more memory: no value is set that takes more of it.
    package var memoryShortage: StateError?

    /// - Throws: ``StateError/Code/readOnly`` for any change of a key; those in memory do not wait for the store.
    @inline(__always)
    func check(isVolatile: Bool) throws(StateError) {
        if let closure { throw closure }
        if let reopening, !isVolatile { throw reopening }
    }
}
