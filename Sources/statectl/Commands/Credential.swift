import CLinux
import Glibc
import StateClient
import StateModel

extension Statectl {
    /// `credential PREFIX/`: answers systemd, which asks for a credential of a unit.
    static func credential(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let prefix = invocation.operands[0]
        guard prefix.last == UInt8(ascii: "/") else {
            throw .usage("credential takes a prefix that ends in /, not '\(shown(prefix))'")
        }
        let wanted = try CredentialRequest()
        let key = try attempt(try Key(bytes: prefix + wanted.unit + "/".bytes + wanted.name))
        let client = try invocation.connect()
        guard let value = try attempt(try client.value(for: key)) else {
            Output.report("there is no key '\(key)': the unit gets an empty credential")
            throw .negative
        }
        output.write(value)
    }

    private static func shown(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// What systemd asks for on standard input: the credential of a unit, in the name of its own socket.
///
/// systemd.exec(5), `LoadCredential=`: an abstract name of `RANDOM/unit/UNIT/CREDENTIAL`.
private struct CredentialRequest {
    let unit: [UInt8]
    let name: [UInt8]

    /// - Throws: ``Failure/usage(_:)`` if standard input is no connection of systemd: of root, or of
    ///   this process's user.
    init() throws(Failure) {
        var peer = clinux_peer()
        guard clinux_peer_credentials(0, &peer) == 0, [0, geteuid()].contains(peer.uid),
            let name = Self.peerName()
        else { throw .usage("credential answers systemd only; see 'statectl credential --help'") }
        let parts = name.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1].elementsEqual("unit".utf8), !parts[2].isEmpty,
            !parts[3].isEmpty
        else { throw .usage("credential answers systemd only; see 'statectl credential --help'") }
        (unit, self.name) = (Array(parts[2]), Array(parts[3]))
    }

    /// The abstract name of the peer's socket, without its first byte, which is 0.
    private static func peerName() -> [UInt8]? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 108) { room in
            let count = clinux_peer_name(0, room.baseAddress)
            return count > 0 ? room[..<Int(count)].map { UInt8(bitPattern: $0) } : nil
        }
    }
}
