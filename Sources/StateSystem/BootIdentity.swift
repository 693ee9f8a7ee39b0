import StatePlatform

/// Which start of the machine this is: what was written and not synced is there as long as it is the
/// same one. https://man7.org/linux/man-pages/man4/random.4.html
package enum BootIdentity {
    /// The bytes of the kernel's random identifier, 36 characters and a line end; empty if it cannot be
    /// read.
    package static func bytes() -> [UInt8] {
        let file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(file, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }
}
