import CLinux
import StateEngine

extension Answer {
    /// Waits on a thread that commits meanwhile what waits in `keyspace`, where nobody else does.
    ///
    /// While it tells of commits it is nobody's: in no scope, and led to by no change.
    func wait(committingIn keyspace: (any WaitableKeyspace)?) {
        if let keyspace {
            let depth = clinux_depth()
            clinux_set_depth(0)
            if StateScope.current == nil {
                keyspace.commitOnCaller()
            } else {
                StateScope.$current.withValue(nil) { keyspace.commitOnCaller() }
            }
            clinux_set_depth(depth)
        }
        wait()
    }
}
