import Glibc
import StateEngine
import StateRules
import StateServer

extension Options {
    /// The cluster that some keys are a copy of; nil if no rule says so.
    var mirror: MirrorOptions? {
        guard let rule = configuration.clusterRule, let keys = rule.keys.first,
            let user = configuration.cluster.user
        else { return nil }
        return MirrorOptions(
            MirroredPrefix(keys.literal),
            user: user,
            node: configuration.cluster.node ?? Options.hostName,
            staleMilliseconds: Int64((rule.staleTime ?? Rule.staleTime) / .milliseconds(1)),
            staleness: MirrorOptions.Staleness(rule.staleness ?? .dated)
        )
    }

    /// The name of this machine.
    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "node" }
        return String(
            decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
            as: UTF8.self
        )
    }
}

extension MirrorOptions.Staleness {
    init(_ written: Rule.Staleness) {
        switch written {
        case .serve: self = .serve
        case .dated: self = .dated
        case .refuse: self = .refuse
        }
    }
}
