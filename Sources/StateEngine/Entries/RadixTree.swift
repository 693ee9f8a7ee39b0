import CLinux

/// Records by key, in key order: an adaptive radix tree with compressed paths.
///
/// The tree provides both look-ups whose cost does not depend on the number of keys, and listings
/// in order. A hash table beside an ordered index was rejected: it takes 5 more bytes per entry,
/// and every overwrite would have to find its place in the index again.
///
/// In the tree, the byte 0 ends each key; keys have no control characters, so no key contains it.
/// The tree owns its nodes, never the records.
package struct RadixTree: ~Copyable {
    private(set) var root = UnsafeMutablePointer<RadixReference>.allocate(capacity: 1)
    package internal(set) var count = 0

    package init() { root.initialize(to: .none) }

    deinit {
        RadixTree.deallocate(root.pointee)
        root.deallocate()
    }

    private static func deallocate(_ reference: RadixReference) {
        guard !reference.isNone, reference.leaf == nil else { return }
        _ = reference.node.forEachChild(from: 0) { _, child in
            deallocate(child)
            return true
        }
        reference.node.deallocate()
    }

    /// The record of `key`.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func record(for key: Bytes) -> Record? { slot(for: key)?.pointee.leaf }

    /// Replaces the record with the same key, which must be there, by `record`.
    ///
    /// - Returns: The replaced record.
    /// - Complexity: O(*n*) in the bytes of the key.
    package mutating func replace(with record: Record) -> Record {
        guard let slot = slot(for: record.key), let old = slot.pointee.leaf else {
            preconditionFailure("no record to replace under \(StateError.quoted(record.key))")
        }
        slot.pointee = RadixReference(record)
        return old
    }

    /// The slot of the leaf of `key`.
    ///
    /// Valid until the next insertion or removal. Prefixes are skipped, not compared: the leaf has
    /// the complete key.
    @inline(__always)
    func slot(for key: Bytes) -> UnsafeMutablePointer<RadixReference>? {
        var slot = root
        var depth = 0
        while !slot.pointee.isNone {
            // Prefetches the cache lines of a node or a record at once, not one after the other.
            clinux_prefetch(slot.pointee.address)
            if let leaf = slot.pointee.leaf { return leaf.key.isEqual(to: key) ? slot : nil }
            let node = slot.pointee.node
            depth += node.prefixByteCount
            guard depth <= key.count, let next = node.child(RadixTree.byte(key, depth)) else {
                return nil
            }
            slot = next
            depth += 1
        }
        return nil
    }

    @inline(__always)
    static func byte(_ key: Bytes, _ depth: Int) -> UInt8 {
        depth < key.count ? key[depth] : 0
    }
}

/// A slot in the tree: empty, a leaf (the address of a ``Record`` with its lowest bit set), or an
/// inner node.
struct RadixReference: Equatable {
    var bits: UInt

    static let none = RadixReference(bits: 0)

    init(bits: UInt) { self.bits = bits }
    init(_ record: Record) { bits = UInt(bitPattern: record.address) | 1 }
    init(_ node: RadixNode) { bits = UInt(bitPattern: node.address) }

    var isNone: Bool { bits == 0 }

    /// The address of the record or the node.
    var address: UnsafeRawPointer? { UnsafeRawPointer(bitPattern: bits & ~1) }

    /// The record, if this is a leaf.
    var leaf: Record? {
        guard bits & 1 == 1, let address = UnsafeMutableRawPointer(bitPattern: bits ^ 1) else {
            return nil
        }
        return Record(address: address)
    }

    /// The node; this must be one, neither empty nor a leaf.
    var node: RadixNode {
        guard let address = UnsafeMutableRawPointer(bitPattern: bits) else {
            preconditionFailure("nothing is taken for a node")
        }
        return RadixNode(address: address)
    }
}

/// An inner node of the tree, in the four sizes of the adaptive radix tree
/// (https://db.in.tum.de/~leis/papers/ART.pdf), and one for the digits of numbers in keys: with
/// 100,000 such keys, the tree takes 128 bytes for ten of them in place of 176.
///
/// ```
///  0 kind    2 child count    4 prefix length    6 the first 10 bytes of the prefix
/// 16 small:  4 edge bytes in order, at 24 4 children       (56 bytes)
/// 16 digits: 11 edge bytes in order, at 32 11 children     (120)
/// 16 medium: 16 edge bytes in order, at 32 16 children     (160)
/// 16 large:  256 places (0: none), at 272 48 children      (656)
/// 16 full:   256 children                                  (2,064)
/// ```
///
/// A prefix longer than 10 bytes is read from any leaf below.
struct RadixNode: Equatable {
    let address: UnsafeMutableRawPointer

    enum Kind: UInt8 {
        case small
        /// The ten digits and the end of a key.
        case digits
        case medium
        case large
        case full

        var capacity: Int {
            switch self {
            case .small: 4
            case .digits: 11
            case .medium: 16
            case .large: 48
            case .full: 256
            }
        }

        var childrenOffset: Int {
            switch self {
            case .small: 24
            case .digits, .medium: 32
            case .large: 272
            case .full: 16
            }
        }

        /// The next larger one.
        var next: Kind { Kind(rawValue: rawValue + 1) ?? .full }
    }

    static let inlinePrefixByteCount = 10
    private static let edgesOffset = 16

    init(address: UnsafeMutableRawPointer) { self.address = address }

    // MARK: Header

    var kind: Kind {
        switch address.load(as: UInt8.self) {
        case 0: .small
        case 1: .digits
        case 2: .medium
        case 3: .large
        default: .full
        }
    }

    var childCount: Int {
        get { Int(address.load(fromByteOffset: 2, as: UInt16.self)) }
        nonmutating set {
            address.storeBytes(of: UInt16(newValue), toByteOffset: 2, as: UInt16.self)
        }
    }

    var prefixByteCount: Int { Int(address.load(fromByteOffset: 4, as: UInt16.self)) }

    /// The part of the prefix that is stored in the node.
    var inlinePrefix: Bytes {
        Bytes(start: address + 6, count: min(prefixByteCount, RadixNode.inlinePrefixByteCount))
    }

    // MARK: Children

    var edges: UnsafeMutablePointer<UInt8> {
        (address + RadixNode.edgesOffset).assumingMemoryBound(to: UInt8.self)
    }

    var children: UnsafeMutablePointer<RadixReference> {
        (address + kind.childrenOffset).assumingMemoryBound(to: RadixReference.self)
    }

    /// The slot of the child behind `byte`; nil if there is none.
    @inline(__always)
    func child(_ byte: UInt8) -> UnsafeMutablePointer<RadixReference>? {
        switch kind {
        case .small:
            let word = address.load(fromByteOffset: 16, as: UInt32.self)
            let index = RadixNode.place(of: byte, in: UInt64(word) | 0xFFFF_FFFF << 32, at: 0)
            return index < childCount ? children + index : nil
        case .digits, .medium:
            let low = address.load(fromByteOffset: 16, as: UInt64.self)
            let high = address.load(fromByteOffset: 24, as: UInt64.self)
            var index = RadixNode.place(of: byte, in: low, at: 0)
            if index >= 8 { index = RadixNode.place(of: byte, in: high, at: 8) }
            return index < childCount ? children + index : nil
        case .large:
            let place = Int(edges[Int(byte)])
            return place == 0 ? nil : children + (place - 1)
        case .full:
            let slot = children + Int(byte)
            return slot.pointee.isNone ? nil : slot
        }
    }

    /// The index of the first byte of `word` that equals `byte`, plus `base`; at least 8 more if
    /// none does.
    @inline(__always)
    private static func place(of byte: UInt8, in word: UInt64, at base: Int) -> Int {
        let difference = word ^ (0x0101_0101_0101_0101 &* UInt64(byte))
        let zeros = (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080
        return base + zeros.trailingZeroBitCount >> 3
    }
}
