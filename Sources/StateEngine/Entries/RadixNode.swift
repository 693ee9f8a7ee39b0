import Glibc

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
/// (https://db.in.tum.de/~leis/papers/ART.pdf).
///
/// ```
///  0 kind    2 child count    4 prefix length    6 the first 10 bytes of the prefix
/// 16 small:  4 edge bytes in order, at 24 4 children       (56 bytes)
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
        case medium
        case large
        case full

        var capacity: Int {
            switch self {
            case .small: 4
            case .medium: 16
            case .large: 48
            case .full: 256
            }
        }

        var childrenOffset: Int {
            switch self {
            case .small: 24
            case .medium: 32
            case .large: 272
            case .full: 16
            }
        }
    }

    static let inlinePrefixByteCount = 10
    private static let edgesOffset = 16

    init(address: UnsafeMutableRawPointer) { self.address = address }

    static func make(_ kind: Kind) -> RadixNode {
        let size = kind.childrenOffset + kind.capacity * 8
        guard let address = calloc(1, size) else { noMemory(for: size) }
        address.storeBytes(of: kind.rawValue, as: UInt8.self)
        return RadixNode(address: address)
    }

    func deallocate() { free(address) }

    // MARK: Header

    var kind: Kind {
        switch address.load(as: UInt8.self) {
        case 0: .small
        case 1: .medium
        case 2: .large
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

    /// Sets `prefix` as the prefix of all keys below; its bytes may be the node's own.
    func setPrefix(_ prefix: Bytes) {
        address.storeBytes(of: UInt16(prefix.count), toByteOffset: 4, as: UInt16.self)
        let kept = min(prefix.count, RadixNode.inlinePrefixByteCount)
        if kept > 0, let base = prefix.baseAddress { memmove(address + 6, base, kept) }
    }

    // MARK: Children

    private var edges: UnsafeMutablePointer<UInt8> {
        (address + RadixNode.edgesOffset).assumingMemoryBound(to: UInt8.self)
    }

    private var children: UnsafeMutablePointer<RadixReference> {
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
        case .medium:
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

    /// Calls `body` for each edge byte of at least `start` and its child, in order, until it
    /// returns false.
    ///
    /// - Returns: False if `body` returned false.
    func forEachChild(from start: UInt8, _ body: (UInt8, RadixReference) -> Bool) -> Bool {
        switch kind {
        case .small, .medium:
            for index in 0..<childCount where edges[index] >= start {
                guard body(edges[index], children[index]) else { return false }
            }
        case .large:
            for byte in Int(start)..<256 where edges[byte] != 0 {
                guard body(UInt8(byte), children[Int(edges[byte]) - 1]) else { return false }
            }
        case .full:
            for byte in Int(start)..<256 where !children[byte].isNone {
                guard body(UInt8(byte), children[byte]) else { return false }
            }
        }
        return true
    }

    /// The child with the least edge byte.
    var firstChild: RadixReference {
        var found = RadixReference.none
        _ = forEachChild(from: 0) { _, child in
            found = child
            return false
        }
        return found
    }

    /// Adds a child behind a byte that has none.
    ///
    /// Returns the node, which is a new one if this was full.
    func adding(_ child: RadixReference, behind byte: UInt8) -> RadixNode {
        guard childCount < kind.capacity else {
            let next: Kind = kind == .small ? .medium : kind == .medium ? .large : .full
            return copied(into: next).adding(child, behind: byte)
        }
        let count = childCount
        switch kind {
        case .small, .medium:
            var index = 0
            while index < count, edges[index] < byte { index += 1 }
            memmove(edges + index + 1, edges + index, count - index)
            memmove(children + index + 1, children + index, (count - index) * 8)
            edges[index] = byte
            children[index] = child
        case .large:
            var place = 0
            while !children[place].isNone { place += 1 }
            children[place] = child
            edges[Int(byte)] = UInt8(place + 1)
        case .full:
            children[Int(byte)] = child
        }
        childCount = count + 1
        return self
    }

    /// Removes the child behind `byte`.
    ///
    /// Returns the node, which is a smaller one if few children are left.
    func removing(_ byte: UInt8) -> RadixNode {
        let count = childCount
        switch kind {
        case .small, .medium:
            var index = 0
            while edges[index] != byte { index += 1 }
            memmove(edges + index, edges + index + 1, count - index - 1)
            memmove(children + index, children + index + 1, (count - index - 1) * 8)
        case .large:
            children[Int(edges[Int(byte)]) - 1] = .none
            edges[Int(byte)] = 0
        case .full:
            children[Int(byte)] = .none
        }
        childCount = count - 1
        // Well below the capacity of the smaller size, so that a key that comes and goes does not
        // copy each time.
        switch kind {
        case .medium where childCount <= 3: return copied(into: .small)
        case .large where childCount <= 12: return copied(into: .medium)
        case .full where childCount <= 36: return copied(into: .large)
        default: return self
        }
    }

    private func copied(into kind: Kind) -> RadixNode {
        var copy = RadixNode.make(kind)
        memcpy(copy.address + 4, address + 4, 12)
        _ = forEachChild(from: 0) { byte, child in
            copy = copy.adding(child, behind: byte)
            return true
        }
        deallocate()
        return copy
    }
}
