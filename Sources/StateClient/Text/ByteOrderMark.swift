package import StateModel

/// The BOM, U+FEFF at the start of a text, which editors on Windows write.
package enum ByteOrderMark {
    static let utf8: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// How many bytes the BOM at the start has: 3 or 0.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if the text is in UTF-16.
    package static func length(in text: ArraySlice<UInt8>) throws(StateError) -> Int {
        guard !text.starts(with: [0xFF, 0xFE]), !text.starts(with: [0xFE, 0xFF]) else {
            throw StateError(.err, "the text is UTF-16: convert it with iconv -f UTF-16 -t UTF-8")
        }
        return text.starts(with: utf8) ? utf8.count : 0
    }
}
