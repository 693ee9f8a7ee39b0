import StateEngine
import StateTestSupport
import StateWire
import Testing

struct VerbTests {
    private func named(_ name: String) -> Verb? {
        Array(name.utf8).withUnsafeBytes { Verb.named($0) }
    }

    @Test func `every name has one verb, found in whatever case`() {
        #expect(Verb.all.map(\.name) == Verb.Name.allCases)
        for name in Verb.Name.allCases {
            let text = name.rawValue
            #expect(named(text)?.name == name)
            #expect(named(text.uppercased())?.name == name)
            #expect(named(text.prefix(1).uppercased() + text.dropFirst())?.name == name)
        }
    }

    @Test func `a name is compared whole`() {
        let known = Set(Verb.Name.allCases.map(\.rawValue))
        #expect(named("") == nil)
        #expect(named("get\0") == nil)
        #expect(named("\0") == nil)
        #expect(named("state.statusstate.status") == nil)
        for name in known {
            for other in [String(name.dropLast()), name + "x", "x" + name, name + " "]
            where !known.contains(other) { #expect(named(other) == nil, "\(other)") }
        }
    }

    @Test(arguments: Seed.each(2)) func `random names are no verbs`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let known = Set(Verb.Name.allCases.map(\.rawValue))
        for _ in 0..<Extent.rounds(100_000) {
            let name = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z"), using: &random)
            }
            let text = String(decoding: name, as: UTF8.self)
            if (named(text) != nil) != known.contains(text) {
                Issue.record("\(text)")
                return
            }
        }
    }

    @Test(arguments: [
        ("get", [1: false, 2: true, 3: false]), ("ping", [1: true, 2: true]),
        ("mset", [2: false, 3: true, 9: true]), ("state.watch", [1: false, 2: true]),
    ])
    func `an arity is exact or a minimum`(name: String, accepted: [Int: Bool]) throws {
        let verb = try #require(named(name))
        for (count, isAccepted) in accepted {
            #expect(verb.accepts(argumentCount: count) == isAccepted)
        }
    }
}
