import Glibc

/// One reserved file descriptor, so that a client can still be accepted and refused with a message
/// when there is no other.
struct DescriptorReserve: ~Copyable {
    private var descriptor: Int32 = -1

    init() { take() }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Runs `body` while the descriptor is free, and reserves it again.
    ///
    /// - Returns: False if there was no reserve; `body` did not run.
    mutating func withFreed(_ body: () -> Void) -> Bool {
        if descriptor < 0 { take() }
        guard descriptor >= 0 else { return false }
        close(descriptor)
        descriptor = -1
        body()
        take()
        return true
    }

    private mutating func take() { descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC) }
}
