import StateEngine
import StateRules
import StateServer

extension FileContainers {
    /// The directories of the rules that say `backing: "file"`; nil where none does.
    convenience init?(_ options: Options, log: Log) {
        self.init(
            options.configuration.rules.fileRules,
            limits: options.configuration.limits.keyspace,
            notice: { log.write(.warning, $0) }
        )
    }
}

extension RuleTable {
    /// What the rules say of where keys live, as far as files are concerned.
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
