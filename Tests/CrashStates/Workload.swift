/// What a recording does: the starts of the daemon, with their configurations, and the operations
/// between them.
struct Workload {
    enum Kind: String, CaseIterable {
        case plain, multi, compaction, settling, shrink, files, rules, stops, memory, late, mixed
    }

    enum Step {
        /// So many operations at once.
        case operations(Int)
        /// Compacts to a share of the newest revision.
        case compact(Double)
        case shrink
    }

    /// From a start to its end.
    struct Life {
        var rules: [Rule]
        var historyChanges: Int
        var steps: [Step]
        var isStopped: Bool
    }

    /// A rule of the configuration.
    struct Rule {
        var prefix: String
        /// Below the root; nil for one of memory, or one of keys that are stored late.
        var directory: String?

        func text(in root: String) -> String {
            if prefix == Keys.latePattern {
                return "{ keys: \"\(prefix)\", durability: \"interval\", commitEvery: \"100ms\" }"
            }
            guard let directory else { return "{ keys: \"\(prefix)\", backing: \"memory\" }" }
            return "{ keys: \"\(prefix)\", backing: \"file\", directory: \"\(root)/\(directory)\" }"
        }
    }

    /// How often each prefix is written, how often several keys at once, and how long values are.
    struct Mix {
        var prefixes: [String]
        var multi = 0.15
        var delete = 0.15
        var longValues = 0.05
        var longByteCount = 1_000...20_000
    }

    let kind: Kind
    var mix: Mix
    var lives: [Life] = []

    init(_ kind: Kind, _ random: inout Random) {
        self.kind = kind
        mix = Workload.mix(of: kind)
        let count =
            [.stops, .rules, .memory, .late, .mixed].contains(kind)
            ? 3 + random.below(2) : 1 + random.below(2)
        for number in 0..<count {
            let isLast = number == count - 1
            let life = Life(
                rules: Workload.rules(of: kind, number, &random),
                historyChanges: Workload.historyChanges(of: kind, &random),
                steps: Workload.steps(of: kind, &random),
                isStopped: kind == .stops ? random.chance(0.8) : random.chance(isLast ? 0.3 : 0.6)
            )
            lives.append(life)
        }
    }

    private static func mix(of kind: Kind) -> Mix {
        switch kind {
        case .plain, .stops, .shrink: Mix(prefixes: ["k/"])
        case .compaction: Mix(prefixes: ["k/"], delete: 0.3)
        case .multi: Mix(prefixes: ["k/"], multi: 0.7)
        case .settling:
            Mix(prefixes: ["k/"], longValues: 0.7, longByteCount: 40_000...120_000)
        case .files: Mix(prefixes: ["app/", "app/", "k/"], multi: 0.3, delete: 0.25)
        case .rules: Mix(prefixes: ["app/", "box/", "k/"], multi: 0.3, delete: 0.2)
        case .memory: Mix(prefixes: ["mem/", "k/"])
        case .late: Mix(prefixes: ["late/", "late/", "late/", "k/"])
        case .mixed: Mix(prefixes: ["k/", "app/", "box/", "mem/"], multi: 0.4, delete: 0.25)
        }
    }

    private static func rules(of kind: Kind, _ number: Int, _ random: inout Random) -> [Rule] {
        let app = Rule(prefix: "app/", directory: "app")
        let memory = Rule(prefix: Keys.memoryPattern, directory: nil)
        switch kind {
        case .files: return [app]
        case .memory: return random.chance(0.7) ? [memory] : []
        case .late: return [Rule(prefix: Keys.latePattern, directory: nil)]
        case .mixed: return random.chance(0.7) ? [app, memory] : [app]
        case .rules:
            // Each start may have other places than the one before.
            let directories =
                random.chance(0.5)
                ? ["app", "box", "new"] : ["app", "box", "new"].shuffled(using: &random)
            // The keys of the first writer may live apart from the others.
            let prefixes =
                random.chance(0.5)
                ? ["app/", "box/"] : ["app/", "app/0/", "box/"].shuffled(using: &random)
            return zip(prefixes, directories).compactMap { prefix, directory in
                random.chance(0.6) ? Rule(prefix: prefix, directory: directory) : nil
            }
        default: return []
        }
    }

    private static func historyChanges(of kind: Kind, _ random: inout Random) -> Int {
        switch kind {
        case .compaction, .shrink: random.one(of: [0, 5, 20])
        case .mixed: random.one(of: [10, 1_000])
        default: 1_000_000
        }
    }

    private static func steps(of kind: Kind, _ random: inout Random) -> [Step] {
        var steps: [Step] = []
        let count = kind == .settling ? 35 + random.below(20) : 6 + random.below(10)
        for _ in 0..<count {
            steps.append(.operations(1 + random.below(6)))
            switch kind {
            case .compaction where random.chance(0.3), .mixed where random.chance(0.1):
                steps.append(.compact(Double.random(in: 0.2...1, using: &random)))
            case .shrink where random.chance(0.25), .mixed where random.chance(0.05):
                steps.append(.compact(1))
                steps.append(.shrink)
            // Settles, with the whole history kept.
            case .settling where random.chance(0.15): steps.append(.shrink)
            default: break
            }
        }
        return steps
    }
}
