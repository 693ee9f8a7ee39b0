/// 128-bit integers. The containers' protocols have their own implementations for these, which
/// throw; without these overloads Swift would choose those over the general ones.
extension KeyedValueEncoder {
    func encode(_ value: Int128, forKey key: Key) throws { try put(scalar: value, key) }
    func encode(_ value: UInt128, forKey key: Key) throws { try put(scalar: value, key) }
}

extension UnkeyedValueEncoder {
    func encode(_ value: Int128) throws { try put(scalar: value) }
    func encode(_ value: UInt128) throws { try put(scalar: value) }
}

extension SingleValueEncoder {
    func encode(_ value: Int128) throws { try put(scalar: value) }
    func encode(_ value: UInt128) throws { try put(scalar: value) }
}

extension KeyedValueDecoder {
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try scalar(type, key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try scalar(type, key) }
}

extension UnkeyedValueDecoder {
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try scalar(type) }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar(type) }
}

extension SingleValueDecoder {
    func decode(_ type: Int128.Type) throws -> Int128 { try scalar(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar(type) }
}

extension StoredDecoder {
    func decode(_ type: Int128.Type) throws -> Int128 { try scalar(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar(type) }
}
