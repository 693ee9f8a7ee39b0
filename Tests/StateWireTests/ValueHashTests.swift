import StateModel
import StateWire
import Testing

struct ValueHashTests {
    /// From the reference implementation, for bytes that follow a formula.
    @Test(
        arguments: [
            (0, 0x2d06_8005_38d3_94c2), (1, 0x4c5c_ca45_d0f4_811f), (2, 0x29c6_0963_cbfa_4e6e),
            (3, 0x6e3e_2670_e611_06ac), (4, 0x5c4c_6313_3443_d03f), (5, 0x49f5_eb31_1128_0b63),
            (8, 0xf9fd_4dd0_b04d_78f5), (9, 0x7c20_df97_12c2_6edf), (15, 0xb345_a7b2_698b_a575),
            (16, 0x86ab_f6ba_ccea_0858), (17, 0xb58b_f5dc_5022_d071), (31, 0x4844_2fcd_5518_b086),
            (32, 0xe371_2ed8_4c04_a66e), (33, 0xa4de_e99b_093e_1f73), (64, 0x1291_d2d4_0423_30dd),
            (65, 0x97c6_bf83_217e_5ec9), (97, 0xf145_a45b_658a_b9dd), (128, 0x10d1_7f72_c0cc_ba41),
            (129, 0x1648_bdc3_db49_d1a2), (144, 0xb46d_bfc6_d9e3_1aba),
            (200, 0xc0fb_c0f4_e181_c826),
            (240, 0xb6cf_af34_3fab_81e6), (241, 0x956c_ae59_2c67_279e),
            (256, 0xb15e_5507_33c5_dfac),
            (1_023, 0xa94f_fcd2_2543_68e4), (1_024, 0x70bd_377d_9574_f4bb),
            (1_025, 0x66c4_487c_41e1_27a7), (1_088, 0xf43d_c77e_28a9_acbc),
            (2_048, 0x8b46_caa6_7dab_3a30), (5_000, 0xe400_7929_540f_095c),
        ] as [(Int, UInt64)]
    )
    func `XXH3 is that of the specification`(count: Int, hash: UInt64) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 131 + 7) }
        #expect(bytes.withUnsafeBytes { ValueHash.xxh3($0) } == hash)
    }

    @Test(arguments: [
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
    ]) func `SHA-1 is that of the standard`(text: String, digest: String) {
        #expect(SHA1(of: text.utf8).description == digest)
        #expect(SHA1(digest)?.description == digest)
        #expect(SHA1(digest.uppercased()) == SHA1(of: text.utf8))
    }

    @Test(arguments: ["", "abc", String(repeating: "g", count: 40)])
    func `what is no SHA-1 is not read as one`(text: String) { #expect(SHA1(text) == nil) }
}
