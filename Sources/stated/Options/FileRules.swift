import StateEngine
import StateRules
import StateServer

extension FileContainers {
    /// The directories of the rules with `backing: "file"`; nil if there are none.
    convenience init?(_ options: Options, log: Log) {
        self.init(
            options.configuration.rules.fileRules,
            limits: options.configuration.limits.keyspace,
            notice: { log.write(.warning, $0) }
        )
    }
}

extension RuleTable {
    /// Where the rules store keys: in files, or elsewhere.
    var fileRules: [FileRule] {
        rules.compactMap { rule -> FileRule? in
            switch rule.backing {
            case nil: nil
            case .file(let directory, let isShared):
                FileRule(keys: rule.keys, directory: directory, isShared: isShared)
            default: FileRule(keys: rule.keys, directory: nil)
            }
        }
    }
}
