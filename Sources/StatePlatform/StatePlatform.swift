// The C library of the system, under one name: the modules of the library import this instead of `Glibc`, so
// that none of them needs to know which one it is. `StatePlatform.close(descriptor)` is the C function, where a
// method has the same name.

#if canImport(Darwin)
@_exported public import Darwin

extension stat {
    /// When the contents last changed, under its name in POSIX.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    package var st_mtim: timespec { st_mtimespec }
    /// When anything about the file last changed, under its name in POSIX.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    package var st_ctim: timespec { st_ctimespec }
}
#else
@_exported public import Glibc
#endif
