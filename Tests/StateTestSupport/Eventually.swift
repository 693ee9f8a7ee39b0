import Glibc

/// Looks again and again until `condition` holds: for what gives no sign of its own that a test could wait for.
///
/// - Returns: Whether it held before the time was over.
package func eventually(
    within timeout: Duration = .seconds(20),
    _ condition: () throws -> Bool
) rethrows -> Bool {
    let deadline = ContinuousClock.now + timeout
    while true {
        if try condition() { return true }
        guard ContinuousClock.now < deadline else { return false }
        poll(nil, 0, 1)
    }
}
