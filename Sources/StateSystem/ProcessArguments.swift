import CLinux
import Glibc

/// The arguments of this process, without its own name.
///
/// This does not use the runtime's `CommandLine`: without /proc, or after a preloaded library has
/// set an environment variable, that is empty, and a program that serves by default would serve a
/// store that nobody named.
package enum ProcessArguments {
    /// The arguments as bytes: they need not be UTF-8.
    package static func bytes() -> [[UInt8]] { Array(all().dropFirst()) }

    /// The path or name by which this process was started; empty if there is none.
    package static func program() -> [UInt8] { all().first ?? [] }

    private static func all() -> [[UInt8]] {
        var count: Int32 = 0
        guard let arguments = clinux_arguments(&count) else {
            fatalError("the C library passes no arguments to constructors: glibc is required")
        }
        return (0..<Int(count)).compactMap { arguments[$0] }.map { argument in
            Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
        }
    }

    /// The arguments as text; bytes that are not UTF-8 are repaired.
    package static func text() -> [String] { bytes().map { String(decoding: $0, as: UTF8.self) } }
}
