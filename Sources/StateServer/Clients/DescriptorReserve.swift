import Glibc

/// One file descriptor that is kept back, so that a client that comes when there is no other can be refused by name.
struct DescriptorReserve: ~Copyable {
    private var descriptor: Int32 = -1

    init() { take() }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Runs `body` while the descriptor is free, and takes it back.
    ///
    /// - Returns: False if there was none to give; `body` was not run.
    mutating func lend(_ body: () -> Void) -> Bool {
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
