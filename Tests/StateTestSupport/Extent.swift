import Glibc

/// How much of a test that could go on for ever is run.
package enum Extent {
    /// Whether ThreadSanitizer makes everything slow.
    #if TSAN
    package static let isSanitized = true
    #else
    package static let isSanitized = false
    #endif

    /// As many rounds of a random test, of which each one is like the others; a tenth where ThreadSanitizer makes them slow.
    package static func rounds(_ count: Int) -> Int {
        isSanitized ? count / 10 : count
    }

    /// The number in the environment variable, which the long form sets; without one, that of the short form.
    package static func named(_ variable: String, short: Int) -> Int {
        getenv(variable).flatMap { Int(String(cString: $0)) } ?? short
    }
}
