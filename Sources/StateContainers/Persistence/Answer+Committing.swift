import CLinux
import StateEngine

extension Answer {
    /// Waits; meanwhile this thread commits what waits in `keyspace`, if no other thread does.
    ///
    /// While it delivers commits, the thread is in no scope, and its changes count as caused by no
    /// other.
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
