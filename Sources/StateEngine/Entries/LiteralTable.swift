/// Objects under literals; one walk over a key finds the objects of all literals that it begins
/// with.
///
/// The cost of a walk does not grow with the number of literals that the key does not begin with:
/// it checks only lengths that exist. The cost of an insertion or a removal does not grow with the
/// size of the table, nor with the number of objects under one literal.
package struct LiteralTable<Element: AnyObject> {
    fileprivate struct Group {
        let literal: [UInt8]
        var elements = IdentitySet<Element>()
    }

    /// Hash collisions are resolved by the literal.
    private var byHash: [Int: [Group]] = [:]
    /// How many groups have a literal of each length.
    private var countsByLength: [Int] = []
    package private(set) var count = 0

    package init() {}

    /// Puts `element`, which must not be in the table yet, under `literal`.
    ///
    /// - Complexity: O(*n*) in the bytes of the literal.
    package mutating func insert(_ element: Element, under literal: [UInt8]) {
        count += 1
        let hash = LiteralHash(of: literal).value
        if let index = byHash[hash]?.firstIndex(where: { $0.literal == literal }) {
            byHash[hash]?[index].elements.insert(element)
            return
        }
        var group = Group(literal: literal)
        group.elements.insert(element)
        byHash[hash, default: []].append(group)
        while countsByLength.count <= literal.count { countsByLength.append(0) }
        countsByLength[literal.count] += 1
    }

    /// Removes `element` from under `literal`, if it is there.
    ///
    /// - Complexity: O(*n*) in the bytes of the literal.
    package mutating func remove(_ element: Element, under literal: [UInt8]) {
        let hash = LiteralHash(of: literal).value
        guard let index = byHash[hash]?.firstIndex(where: { $0.literal == literal }),
            byHash[hash]?[index].elements.remove(element) ?? false
        else { return }
        count -= 1
        guard byHash[hash]?[index].elements.isEmpty ?? false else { return }
        byHash[hash]?.remove(at: index)
        if byHash[hash]?.isEmpty ?? false { byHash[hash] = nil }
        countsByLength[literal.count] -= 1
    }

    /// Calls `body` with everything whose literal is `name`.
    ///
    /// - Complexity: O(*n*) in the bytes of the name, plus the elements found.
    package func forEach(under name: Bytes, _ body: (Element) -> Void) {
        guard name.count < countsByLength.count, countsByLength[name.count] > 0 else { return }
        forEach(LiteralHash(of: name).value, name, body)
    }

    /// Calls `body` with everything whose literal is a prefix of `name`, the shortest literal
    /// first.
    ///
    /// - Complexity: O(*n*) in the bytes of the name, plus the elements found.
    package func forEach(atStartOf name: Bytes, _ body: (Element) -> Void) {
        var hash = LiteralHash()
        for length in 0..<min(name.count + 1, countsByLength.count) {
            if length > 0 { hash.take(name[length - 1]) }
            if countsByLength[length] > 0 { forEach(hash.value, name.slice(0, length), body) }
        }
    }

    /// Whether the literal of anything is `name`.
    ///
    /// - Complexity: O(*n*) in the bytes of the name.
    package func hasAny(under name: Bytes) -> Bool {
        guard name.count < countsByLength.count, countsByLength[name.count] > 0 else {
            return false
        }
        return hasAny(LiteralHash(of: name).value, name)
    }

    /// Whether the literal of anything is a prefix of `name`.
    ///
    /// - Complexity: O(*n*) in the bytes of the name.
    package func hasAny(atStartOf name: Bytes) -> Bool {
        var hash = LiteralHash()
        for length in 0..<min(name.count + 1, countsByLength.count) {
            if length > 0 { hash.take(name[length - 1]) }
            if countsByLength[length] > 0, hasAny(hash.value, name.slice(0, length)) { return true }
        }
        return false
    }

    private func hasAny(_ hash: Int, _ literal: Bytes) -> Bool {
        byHash[hash]?.contains { $0.literal.withUnsafeBytes(literal.isEqual) } ?? false
    }

    private func forEach(_ hash: Int, _ literal: Bytes, _ body: (Element) -> Void) {
        guard let groups = byHash[hash] else { return }
        for group in groups where group.literal.withUnsafeBytes(literal.isEqual) {
            for element in group.elements.all { body(element) }
        }
    }
}

extension LiteralTable: Sendable where Element: Sendable {}
extension LiteralTable.Group: Sendable where Element: Sendable {}
