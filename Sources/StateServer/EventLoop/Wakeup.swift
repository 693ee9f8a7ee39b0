import CLinux
import Glibc

/// What wakes the loop: an eventfd, which other threads write to.
///
/// Whoever may wake holds it, and the descriptor lives as long: once it is closed its number is another's, a file of the store
/// perhaps.
package final class Wakeup: Sendable {
    package let descriptor: Int32

    init() {
        descriptor = clinux_eventfd()
        precondition(descriptor >= 0, "eventfd: \(String(cString: strerror(errno)))")
    }

    deinit { close(descriptor) }

    /// Edge-triggered, so nobody has to read it.
    func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }
}
