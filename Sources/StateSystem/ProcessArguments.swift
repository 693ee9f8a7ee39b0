import CLinux
import StatePlatform

/// The arguments of this process, without its own name.
///
/// This does not use the runtime's `CommandLine`: without /proc, or after a preloaded library has
/// set an environment variable, that is empty, and a program that serves by default would serve a
/// store that nobody named.
package enum ProcessArguments {
    /// The arguments as bytes: they need not be UTF-8.
    ///
    /// No slice or array of pointers here: the runtime would make its type at each start, which takes
    /// longer than the rest of this.
    package static func bytes() -> [[UInt8]] {
        let (arguments, count) = all()
        var found: [[UInt8]] = []
        var number = 1
        while number < count {
            found.append(bytes(of: arguments[number]))
            number += 1
        }
        return found
    }

    /// The path or name by which this process was started; empty if there is none.
    package static func program() -> [UInt8] {
        let (arguments, count) = all()
        return count > 0 ? bytes(of: arguments[0]) : []
    }

    private static func all() -> (UnsafePointer<UnsafeMutablePointer<CChar>?>, count: Int) {
        var count: Int32 = 0
        guard let arguments = clinux_arguments(&count) else {
            fatalError("the C library passes no arguments to constructors: glibc is required")
        }
        return (arguments, Int(count))
    }

    private static func bytes(of argument: UnsafeMutablePointer<CChar>?) -> [UInt8] {
        guard let argument else { return [] }
        return Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
    }

    /// The arguments as text; bytes that are not UTF-8 are repaired.
    package static func text() -> [String] { bytes().map { String(decoding: $0, as: UTF8.self) } }
}
