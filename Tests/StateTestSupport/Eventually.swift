import Glibc
package import StateEngine

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

/// Tries again as long as `body` is refused with `code`, for so long at most.
package func retried<R>(
    while code: StateError.Code,
    within timeout: Duration = .seconds(20),
    _ body: () throws -> R
) throws -> R {
    var result: R?
    _ = try eventually(within: timeout) {
        do { result = try body() } catch let error as StateError where error.code == code {}
        return result != nil
    }
    return try result ?? body()
}
