import Glibc

/// How much of a test that could go on for ever is run.
package enum Extent {
    /// The number in the environment variable, which the long form sets; without one, that of the short form.
    package static func named(_ variable: String, short: Int) -> Int {
        getenv(variable).flatMap { Int(String(cString: $0)) } ?? short
    }
}
