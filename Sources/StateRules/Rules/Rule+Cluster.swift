import StateEngine
import StateJSON

/// The keys that are a copy of what a cluster has.
extension Rule {
    /// What reads of such keys get while the copy may be behind.
    package enum Staleness: String, CaseIterable, Sendable {
        /// The value.
        case serve
        /// The same, and STATE.GET says how old it is.
        case dated = "mark"
        /// An error.
        case refuse
    }

    /// How long after the last proof the copy counts as current, unless a rule says it.
    package static let staleTime = Duration.seconds(5)
    /// The link proves it every two seconds.
    private static let staleTimes = Duration.seconds(3)...Duration.seconds(86_400)

    /// Whether storage may have the keys later than readers: what a cluster has is safe there.
    var isDeferring: Bool { durability == .interval || durability == nil && backing == .cluster }

    /// Reads `stale` and `staleAfter`, and refuses what has no meaning for such keys.
    mutating func readCluster(_ reader: inout OptionReader) throws(OptionFault) {
        staleness = try reader.word("stale", of: Staleness.self)
        staleTime = try reader.duration("staleAfter")
        if let staleTime, !Rule.staleTimes.contains(staleTime) {
            reader.note("staleAfter", "expected a time from 3s to 1d")
        }
        guard backing == .cluster else {
            for option in ["stale", "staleAfter"] where reader.has(option) {
                reader.note(option, "it needs backing: \"cluster\" in the same rule")
            }
            return
        }
        if keys.count != 1 || keys[0].kind != .prefix || keys[0] == .everything {
            reader.note("backing", "\"cluster\" needs one prefix in 'keys', such as \"app/\"")
        }
        if let durability, durability != .interval, durability != .synced {
            reader.note("durability", "keys of a cluster have \"interval\" or \"synced\"")
        }
        if reader.has("lifetime") {
            reader.note("lifetime", "the cluster decides that for its keys: remove it")
        }
    }
}

extension Configuration {
    /// The cluster that some keys are a copy of.
    package struct Cluster: Sendable {
        /// The uid of the link that brings its changes.
        package var user: UInt32?
        /// The name of this machine in the cluster; nil for its host name.
        package var node: String?
    }

    /// The rule with `backing: "cluster"`; nil without such keys.
    package var clusterRule: Rule? { rules.rules.first { $0.backing == .cluster } }

    mutating func readCluster(
        _ reader: inout OptionReader,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        let user = try reader.string("user") { name, path throws(OptionFault) in
            try accounts.userNumber(name, path, &warnings)
        }
        cluster.user = (user ?? nil) ?? cluster.user
        let node = try reader.string("node") { text, path throws(OptionFault) in
            guard (try? Key(text)) != nil, text.utf8.count <= 64, !text.contains("/") else {
                throw OptionFault(path, "expected a name of at most 64 bytes without '/'")
            }
            return text
        }
        cluster.node = node ?? cluster.node
    }
}

/// A cluster, and what other rules say of its keys.
struct ClusterChecks {
    private(set) var faults: [OptionFault] = []

    /// - Parameters:
    ///   - rules: All rules.
    ///   - cluster: What the configuration says of the cluster.
    ///   - credentials: The prefix below which credentials become values; nil for none.
    init(_ rules: [Rule], _ cluster: Configuration.Cluster, credentials: String?) {
        let ours = rules.filter { $0.backing == .cluster && $0.keys.count == 1 }
        guard let rule = ours.first else { return }
        func add(_ rule: Rule, _ message: String) {
            faults.append(rule.fault(rule.path.member("backing"), message))
        }
        if cluster.user == nil {
            add(rule, "\"cluster\" needs 'cluster: { user: … }', the user of its link")
        }
        for other in ours.dropFirst() {
            add(other, "\(rule.place) has \"cluster\" already, and there is one such prefix")
        }
        let prefix = MirroredPrefix(rule.keys[0].literal)
        if let credentials, let keys = try? Pattern(credentials), prefix.meets(keys) {
            add(rule, "\"credentials\" become values below \(credentials), which are the cluster's")
        }
        for other in rules where other.backing != nil && other.backing != .cluster {
            guard let keys = other.keys.first(where: prefix.meets), keys != .everything else {
                continue
            }
            let shown = keys.bytes.withUnsafeBytes { StateError.quoted($0) }
            add(other, "\(shown) may match keys of the cluster, see \(rule.place)")
        }
    }
}
