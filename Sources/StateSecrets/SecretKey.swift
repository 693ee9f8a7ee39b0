internal import CCrypto
import CLinux
public import StateContainers
import StatePlatform
import StateSystem

/// The key that seals secrets: 32 bytes that are not stored beside them.
public struct SecretKey: Sendable, CustomStringConvertible {
    /// How many bytes a key has.
    public static var byteCount: Int { 32 }

    let bytes: Secret

    /// `•••`.
    public var description: String { "•••" }

    /// Takes a key.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if it has not ``byteCount`` bytes.
    public init(_ bytes: Secret) throws(StateError) {
        guard bytes.count == SecretKey.byteCount else {
            throw StateError(
                .invalidRequest,
                "a key must have \(SecretKey.byteCount) bytes, not \(bytes.count)"
            )
        }
        self.bytes = bytes
    }

    /// Makes a new key, at random.
    public init() {
        var bytes = [UInt8](repeating: 0, count: SecretKey.byteCount)
        fillWithRandom(&bytes)
        self.bytes = Secret(bytes)
        bytes.wipe()
    }

    /// Reads the key from a credential of systemd: `LoadCredentialEncrypted=NAME:…` in the unit.
    ///
    /// - Throws: ``StateError/Code/storage`` if there is no such credential, or it is not a key.
    public static func credential(_ name: String) throws(StateError) -> SecretKey {
        guard let directory = getenv("CREDENTIALS_DIRECTORY") else {
            throw StateError(
                .storage,
                "there is no credential '\(name)': the process was not started by systemd with one"
            )
        }
        return try read("\(String(cString: directory))/\(name)", isOwned: false)
    }

    /// Reads the key from a file, which only its owner may read; makes the file, with a new key, if
    /// there is none.
    ///
    /// - Throws: ``StateError/Code/storage`` if it cannot be read or made, if others may read it, or
    ///   if it is not a key. No existing file has changed.
    public static func file(_ path: String) throws(StateError) -> SecretKey {
        let key = SecretKey()
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST { return try read(path, isOwned: true) }
            throw StateError(.storage, "\(path) cannot be created: \(lastSystemError())")
        }
        defer { close(descriptor) }
        let isWritten = key.bytes.withBytes { bytes in
            write(descriptor, bytes.baseAddress, bytes.count) == bytes.count
                && clinux_sync(descriptor) == 0
        }
        guard isWritten else {
            let reason = lastSystemError()
            unlink(path)
            throw StateError(.storage, "\(path) cannot be written: \(reason)")
        }
        return key
    }

    private static func read(_ path: String, isOwned: Bool) throws(StateError) -> SecretKey {
        let descriptor: Int32
        do throws(OpenFailure) { descriptor = try NamedFile.open(path, O_RDONLY) } catch {
            throw StateError(.storage, error.sentence(path, "read"))
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw StateError(.storage, "\(path) cannot be read: \(lastSystemError())")
        }
        guard !isOwned || status.st_mode & 0o077 == 0 else {
            throw StateError(
                .storage,
                "\(path) can be read by others than its owner: chmod 600 \(path)"
            )
        }
        var bytes = [UInt8](repeating: 0, count: byteCount + 1)
        defer { bytes.wipe() }
        let count = StatePlatform.read(descriptor, &bytes, bytes.count)
        guard count == byteCount else {
            throw StateError(.storage, "\(path) is no key: a key has \(byteCount) bytes")
        }
        return try SecretKey(Secret(bytes.prefix(byteCount)))
    }
}

/// Fills `bytes` with random ones of the system; ends the process if it has none.
func fillWithRandom(_ bytes: inout [UInt8]) {
    let isFilled = RAND_bytes(&bytes, Int32(bytes.count))
    guard isFilled == 1 else { fatalError("the system has no random bytes") }
}

/// The reason of the last system call that failed.
private func lastSystemError() -> String { String(cString: strerror(errno)) }
