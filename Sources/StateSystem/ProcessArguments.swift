import CLinux
import Glibc

/// The arguments that this process was started with, without its own name.
///
/// Not the runtime's `CommandLine`: without /proc, or after a preloaded library has set a variable of the environment, that has
/// none of them, and a program that serves by default would serve what nobody named.
package enum ProcessArguments {
    /// The arguments as the bytes that they are: a value need not be UTF-8.
    package static func bytes() -> [[UInt8]] { Array(all().dropFirst()) }

    /// The path or name that this process was started by; empty if it has none.
    package static func program() -> [UInt8] { all().first ?? [] }

    private static func all() -> [[UInt8]] {
        var count: Int32 = 0
        guard let arguments = clinux_arguments(&count) else {
            fatalError("the C library hands no arguments to constructors: this program needs glibc")
        }
        return (0..<Int(count)).compactMap { arguments[$0] }.map { argument in
            Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
        }
    }

    /// The arguments as text; bytes that are not UTF-8 are repaired.
    package static func text() -> [String] { bytes().map { String(decoding: $0, as: UTF8.self) } }
}
