internal import CCrypto
public import StateContainers

/// Encrypts and authenticates bytes: AES-256-GCM of libcrypto.
///
/// ```
/// 1 byte    1: this format
/// 12 bytes  the nonce, at random
/// n bytes   the encrypted bytes
/// 16 bytes  the tag, which also covers the key of the entry
/// ```
///
/// A random nonce may repeat after about 2^32 values of one key (NIST SP 800-38D, 8.3), which is
/// more than a program writes.
enum Sealing {
    private static var format: UInt8 { 1 }
    private static var nonceCount: Int { 12 }
    private static var tagCount: Int { 16 }

    /// Whether what this task encodes is sealed afterwards.
    @TaskLocal private static var isSealing = false

    static func sealing<R>(_ body: () throws -> R) rethrows -> R {
        try $isSealing.withValue(true, operation: body)
    }

    /// - Throws: `EncodingError` if what is encoded will not be sealed.
    static func checkSealed(_ value: Any, _ encoder: any Encoder) throws {
        guard !isSealing else { return }
        let context = EncodingError.Context(
            codingPath: encoder.codingPath,
            debugDescription: "a secret can only be stored by a codec that is sealed(with:for:)"
        )
        throw EncodingError.invalidValue(value, context)
    }

    static func sealed(_ plain: [UInt8], _ key: SecretKey, for name: String) -> [UInt8] {
        var nonce = [UInt8](repeating: 0, count: nonceCount)
        fillWithRandom(&nonce)
        var tag = [UInt8](repeating: 0, count: tagCount)
        var result = [UInt8](repeating: 0, count: plain.count)
        let isDone = withCipher(key, nonce, name, encrypts: true) { context in
            var count: Int32 = 0
            return EVP_CipherUpdate(context, &result, &count, plain, Int32(plain.count)) == 1
                && EVP_CipherFinal_ex(context, nil, &count) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagCount), &tag) == 1
        }
        guard isDone else { fatalError("libcrypto cannot encrypt") }
        return [format] + nonce + result + tag
    }

    /// The bytes that were sealed; nil if they were changed, or sealed with another key or for
    /// another entry.
    static func opened(_ sealed: [UInt8], _ key: SecretKey, for name: String) -> [UInt8]? {
        guard sealed.count >= 1 + nonceCount + tagCount, sealed[0] == format else { return nil }
        let nonce = Array(sealed[1...].prefix(nonceCount))
        var tag = Array(sealed.suffix(tagCount))
        let secret = Array(sealed.dropFirst(1 + nonceCount).dropLast(tagCount))
        var plain = [UInt8](repeating: 0, count: secret.count)
        let isDone = withCipher(key, nonce, name, encrypts: false) { context in
            var count: Int32 = 0
            return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagCount), &tag) == 1
                && EVP_CipherUpdate(context, &plain, &count, secret, Int32(secret.count)) == 1
                && EVP_CipherFinal_ex(context, nil, &count) == 1
        }
        if !isDone { plain.wipe() }
        return isDone ? plain : nil
    }

    /// Differs between keys and does not reveal them: the SHA-256 of the key.
    static func fingerprint(of key: SecretKey) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        key.bytes.withBytes { bytes in
            _ = EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_sha256(), nil)
        }
        return digest
    }

    private static func withCipher(
        _ key: SecretKey,
        _ nonce: [UInt8],
        _ name: String,
        encrypts: Bool,
        _ body: (OpaquePointer) -> Bool
    ) -> Bool {
        guard let context = EVP_CIPHER_CTX_new() else { return false }
        defer { EVP_CIPHER_CTX_free(context) }
        let isReady = key.bytes.withBytes { key in
            EVP_CipherInit_ex(
                context,
                EVP_aes_256_gcm(),
                nil,
                key.assumingMemoryBound(to: UInt8.self).baseAddress,
                nonce,
                encrypts ? 1 : 0
            ) == 1
        }
        guard isReady else { return false }
        var count: Int32 = 0
        let name = Array(name.utf8)
        guard EVP_CipherUpdate(context, nil, &count, name, Int32(name.count)) == 1 else {
            return false
        }
        return body(context)
    }
}

extension StateCodec {
    /// The same codec, whose bytes are encrypted at rest.
    ///
    /// - Parameters:
    ///   - secretKey: Encrypts the bytes.
    ///   - key: The key of the entry; bytes that are copied to another entry cannot be read there.
    /// - Returns: A codec whose errors name no part of the value. Bytes that were changed, or
    ///   encrypted with another key, throw ``StateError/Code/undecodable``, and stay.
    public func sealed(with secretKey: SecretKey, for key: Key) -> StateCodec {
        let name = key.description
        var codec = StateCodec { (value) throws(StateError) in
            var plain: [UInt8]?
            do { plain = try Sealing.sealing { try encode(value) } } catch {
                throw StateError(.rejected, "the secret value cannot be encoded")
            }
            guard var bytes = plain.take() else { return nil }
            defer { bytes.wipe() }
            return Sealing.sealed(bytes, secretKey, for: name)
        } decode: { (bytes) throws(StateError) in
            guard let bytes else { return try decode(nil) }
            guard var plain = Sealing.opened(bytes, secretKey, for: name) else {
                throw StateError(
                    .undecodable,
                    "the secret was changed, or sealed with another key or for another entry"
                )
            }
            defer { plain.wipe() }
            do { return try decode(plain) } catch {
                throw StateError(
                    .undecodable,
                    "the secret does not decode as the type of its container"
                )
            }
        }
        codec.seal = Sealing.fingerprint(of: secretKey)
        return codec
    }
}
