package import StateModel

/// Hashes of values that clients compute, too.
package enum ValueHash {
    /// XXH3 with 64 bits and seed 0 (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), the
    /// hash of DIGEST.
    ///
    /// - Complexity: O(*n*) in the bytes.
    package static func xxh3(_ bytes: Bytes) -> UInt64 {
        secret.withUnsafeBytes { secret in
            switch bytes.count {
            case 0: finish64(word(secret, 56) ^ word(secret, 64))
            case 1...16: short(bytes, secret)
            case 17...240: middle(bytes, secret)
            default: long(bytes, secret)
            }
        }
    }

    private static let primes: (UInt64, UInt64, UInt64, UInt64, UInt64) = (
        0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9,
        0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5
    )
    private static let shortPrimes: (UInt64, UInt64, UInt64) = (
        0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D
    )

    /// The default secret of the specification.
    private static let secret: [UInt8] = [
        0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad,
        0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3,
        0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc,
        0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
        0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65,
        0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
        0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9,
        0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
        0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb,
        0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0,
        0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d,
        0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
        0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
    ]

    private static func word(_ bytes: Bytes, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func half(_ bytes: Bytes, _ offset: Int) -> UInt64 {
        UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    private static func finish(_ hash: UInt64) -> UInt64 {
        let mixed = (hash ^ hash >> 37) &* 0x1656_6791_9E37_79F9
        return mixed ^ mixed >> 32
    }

    private static func finish64(_ hash: UInt64) -> UInt64 {
        var mixed = (hash ^ hash >> 33) &* primes.1
        mixed = (mixed ^ mixed >> 29) &* primes.2
        return mixed ^ mixed >> 32
    }

    private static func rotate(_ word: UInt64, _ count: UInt64) -> UInt64 {
        word << count | word >> (64 - count)
    }

    private static func short(_ bytes: Bytes, _ secret: Bytes) -> UInt64 {
        let count = bytes.count
        if count < 4 {
            let (first, middle) = (UInt64(bytes[0]), UInt64(bytes[count >> 1]))
            let combined =
                first << 16 | middle << 24 | UInt64(bytes[count - 1]) | UInt64(count) << 8
            return finish64(combined ^ half(secret, 0) ^ half(secret, 4))
        }
        if count < 9 {
            let input = half(bytes, count - 4) &+ half(bytes, 0) << 32
            var hash = input ^ word(secret, 8) ^ word(secret, 16)
            hash ^= rotate(hash, 49) ^ rotate(hash, 24)
            hash = hash &* 0x9FB2_1C65_1E98_DF25
            hash = (hash ^ (hash >> 35 &+ UInt64(count))) &* 0x9FB2_1C65_1E98_DF25
            return hash ^ hash >> 28
        }
        let low = word(bytes, 0) ^ word(secret, 24) ^ word(secret, 32)
        let high = word(bytes, count - 8) ^ word(secret, 40) ^ word(secret, 48)
        return finish(UInt64(count) &+ low.byteSwapped &+ high &+ fold(low, high))
    }

    private static func mix(
        _ bytes: Bytes,
        _ offset: Int,
        _ secret: Bytes,
        _ place: Int
    ) -> UInt64 {
        fold(
            word(bytes, offset) ^ word(secret, place),
            word(bytes, offset + 8) ^ word(secret, place + 8)
        )
    }

    private static func middle(_ bytes: Bytes, _ secret: Bytes) -> UInt64 {
        let count = bytes.count
        var sum = UInt64(count) &* primes.0
        if count <= 128 {
            for pair in 0...(count - 1) / 32 {
                sum &+= mix(bytes, 16 * pair, secret, 32 * pair)
                sum &+= mix(bytes, count - 16 * (pair + 1), secret, 32 * pair + 16)
            }
            return finish(sum)
        }
        for round in 0..<8 { sum &+= mix(bytes, 16 * round, secret, 16 * round) }
        sum = finish(sum)
        for round in 8..<count / 16 { sum &+= mix(bytes, 16 * round, secret, 16 * round - 125) }
        return finish(sum &+ mix(bytes, count - 16, secret, 119))
    }

    private static func long(_ bytes: Bytes, _ secret: Bytes) -> UInt64 {
        var lanes: [UInt64] = [
            shortPrimes.2, primes.0, primes.1, primes.2, primes.3, shortPrimes.1, primes.4,
            shortPrimes.0,
        ]
        func add(_ offset: Int, _ place: Int) {
            for lane in 0..<8 {
                let value = word(bytes, offset + 8 * lane)
                let key = value ^ word(secret, place + 8 * lane)
                lanes[lane ^ 1] &+= value
                lanes[lane] &+= (key & 0xFFFF_FFFF) &* (key >> 32)
            }
        }
        let stripes = (bytes.count - 1) / 64
        for stripe in 0..<stripes {
            add(64 * stripe, stripe % 16 * 8)
            guard stripe % 16 == 15 else { continue }
            for lane in 0..<8 {
                let mixed = lanes[lane] ^ lanes[lane] >> 47 ^ word(secret, 128 + 8 * lane)
                lanes[lane] = mixed &* shortPrimes.0
            }
        }
        add(bytes.count - 64, 121)
        var sum = UInt64(bytes.count) &* primes.0
        for pair in 0..<4 {
            sum &+= fold(
                lanes[2 * pair] ^ word(secret, 11 + 16 * pair),
                lanes[2 * pair + 1] ^ word(secret, 19 + 16 * pair)
            )
        }
        return finish(sum)
    }
}
