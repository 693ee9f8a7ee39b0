import StateEngine
import StateTestSupport
import Testing

@Suite struct RadixTreeTests {
    @Test func `an empty tree finds nothing, lists nothing and is whole`() {
        let tree = RecordTree()
        #expect(tree.value("a") == nil)
        #expect(tree.value("") == nil)
        #expect(tree.keys() == [])
        #expect(tree.faults() == [])
    }

    @Test func `a key that begins another is another key`() {
        let tree = RecordTree(["a", "ab", "abc", "a/b", "a/b/c"])
        #expect(tree.keys() == ["a", "a/b", "a/b/c", "ab", "abc"])
        #expect(tree.value("a/") == nil)
        #expect(tree.value("abcd") == nil)
        tree.remove("ab")
        #expect(tree.keys() == ["a", "a/b", "a/b/c", "abc"])
        #expect(tree.value("abc") != nil)
        #expect(tree.faults() == [])
    }

    @Test(arguments: 0...24) func `paths around the ten bytes kept in a node are split and joined`(
        length: Int
    ) {
        let stem = String(repeating: "s", count: length)
        let tree = RecordTree([stem + "left", stem + "right"])
        // A key that leaves the common path at each of its bytes, and one that ends there.
        for cut in 0..<length {
            let head = String(repeating: "s", count: cut)
            tree.insert(head + "x")
            #expect(tree.faults() == [], "left at \(cut)")
            tree.insert(head + "r")
            #expect(tree.value(stem + "left") != nil, "left at \(cut)")
            #expect(tree.value(stem + "righ") == nil)
            tree.remove(head + "x")
            tree.remove(head + "r")
            #expect(tree.faults() == [], "joined at \(cut)")
        }
        #expect(tree.keys() == [stem + "left", stem + "right"])
    }

    @Test func `a key of 1,024 bytes is found, listed and removed`() {
        let long = String(repeating: "k", count: 1_024)
        let tree = RecordTree([long, String(long.dropLast()), String(long.dropLast()) + "l"])
        #expect(tree.value(long) != nil)
        #expect(tree.value(String(long.dropLast(2))) == nil)
        #expect(tree.keys(prefix: String(long.dropLast())).count == 3)
        tree.remove(long)
        #expect(tree.value(long) == nil)
        #expect(tree.keys().count == 2)
        #expect(tree.faults() == [])
    }

    @Test
    func
        `1,024 keys, each one byte longer than the last, are listed in order and after each other`()
    {
        let tree = RecordTree()
        let keys = (1...1_024).map { String(repeating: "n", count: $0) }
        for key in keys.reversed() { tree.insert(key) }
        #expect(tree.keys() == keys)
        #expect(tree.keys(after: keys[1_000]) == Array(keys[1_001...]))
        #expect(tree.keys(prefix: keys[1_020]) == Array(keys[1_020...]))
        for key in keys.dropFirst() { tree.remove(key) }
        #expect(tree.keys() == ["n"])
        #expect(tree.faults() == [])
    }

    @Test(arguments: [false, true])
    func `a node grows through all its sizes and shrinks again`(isReversed: Bool) {
        let tree = RecordTree()
        // 255 edges and, by the key that ends here, the 256th.
        let edges = Array(UInt8(1)...UInt8(255))
        let keys = [Array("stem".utf8)] + edges.map { Array("stem".utf8) + [$0] }
        for key in isReversed ? keys.reversed() : keys {
            tree.insert(key)
            #expect(tree.faults() == [], "\(tree.count) keys")
        }
        #expect(tree.byteKeys() == keys)
        for (index, key) in keys.enumerated() {
            tree.remove(key)
            #expect(tree.faults() == [], "\(tree.count) keys")
            #expect(tree.value(key) == nil)
            if let next = keys.dropFirst(index + 1).first { #expect(tree.value(next) != nil) }
        }
        #expect(tree.count == 0)
    }

    @Test func `a bound between, before and behind the keys of a prefix`() {
        let tree = RecordTree(["a", "b/1", "b/2", "b/20", "b/3", "c"])
        #expect(tree.keys(prefix: "b/", after: "a") == ["b/1", "b/2", "b/20", "b/3"])
        #expect(tree.keys(prefix: "b/", after: "b/") == ["b/1", "b/2", "b/20", "b/3"])
        #expect(tree.keys(prefix: "b/", after: "b/10") == ["b/2", "b/20", "b/3"])
        #expect(tree.keys(prefix: "b/", after: "b/2") == ["b/20", "b/3"])
        #expect(tree.keys(prefix: "b/", after: "b/3") == [])
        #expect(tree.keys(prefix: "b/", after: "c") == [])
        #expect(tree.keys(prefix: "d") == [])
        #expect(tree.keys(after: "b/2", limit: 1) == ["b/20"])
    }

    @Test(arguments: Seed.each(8)) func `random keys agree with a sorted dictionary`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let tree = RecordTree()
        var model: [[UInt8]: UInt64] = [:]
        let alphabet = RandomKeys(&random)
        for step in 0..<3_000 {
            let key = alphabet.next(&random)
            if model[key] == nil, !random.chance(35) {
                model[key] = UInt64(step)
                tree.insert(key, value: UInt64(step))
            } else if model[key] != nil, random.chance(60) {
                model[key] = nil
                tree.remove(key)
            } else if model[key] != nil {
                model[key] = UInt64(step)
                tree.replace(key, value: UInt64(step))
            }
            #expect(tree.value(key) == model[key], "step \(step)")
            guard step % 100 == 0 else { continue }
            #expect(tree.faults() == [], "step \(step)")
            compareWalks(tree, model, alphabet, &random)
        }
        #expect(model.allSatisfy { tree.value($0.key) == $0.value })
        for key in model.keys { tree.remove(key) }
        #expect(tree.count == 0)
        #expect(tree.faults() == [])
    }

    private func compareWalks(
        _ tree: RecordTree,
        _ model: [[UInt8]: UInt64],
        _ alphabet: RandomKeys,
        _ random: inout SplitMix
    ) {
        let sorted = model.keys.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(tree.byteKeys() == sorted)
        for _ in 0..<20 {
            let whole = alphabet.next(&random)
            let prefix = Array(whole.prefix(Int.random(in: 0...whole.count, using: &random)))
            let bound = random.chance(70) ? alphabet.next(&random) : nil
            let limit = random.chance(50) ? Int.random(in: 1...5, using: &random) : Int.max
            let expected = sorted.filter {
                $0.starts(with: prefix) && (bound?.lexicographicallyPrecedes($0) ?? true)
            }
            #expect(
                tree.byteKeys(prefix: prefix, after: bound, limit: limit)
                    == Array(expected.prefix(limit)),
                "prefix \(prefix), bound \(bound ?? [])"
            )
        }
    }
}

/// Keys that crowd together: few bytes, many common beginnings, some of them long, and bytes over 0x7F.
struct RandomKeys {
    private let stems: [[UInt8]]
    private let bytes: [UInt8]

    init(_ random: inout SplitMix) {
        // Now and then all bytes, so that nodes of every size come about.
        let width = [2, 6, 24, 60, 255].randomElement(using: &random) ?? 2
        bytes = Array(Array(UInt8(1)...UInt8(255)).shuffled(using: &random).prefix(width))
        var stems: [[UInt8]] = [[]]
        for _ in 0..<6 {
            let base = stems.randomElement(using: &random) ?? []
            let length = [1, 9, 10, 11, 30, 200].randomElement(using: &random) ?? 1
            stems.append(base + RandomKeys.tail(bytes, length, &random))
        }
        self.stems = stems
    }

    func next(_ random: inout SplitMix) -> [UInt8] {
        let stem = stems.randomElement(using: &random) ?? []
        let length = Int.random(in: stem.isEmpty ? 1...3 : 0...3, using: &random)
        return Array((stem + RandomKeys.tail(bytes, length, &random)).prefix(1_024))
    }

    private static func tail(
        _ bytes: [UInt8],
        _ length: Int,
        _ random: inout SplitMix
    ) -> [UInt8] {
        (0..<length).map { _ in bytes.randomElement(using: &random) ?? 1 }
    }
}
