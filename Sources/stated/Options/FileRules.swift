import StateEngine
import StateRules
import StateServer

extension FileContainers {
    /// The directories of the rules with `backing: "file"`; nil if there are none.
    convenience init?(_ options: Options, log: Log) {
        self.init(
            options.configuration.rules.fileRules,
            limits: options.configuration.limits.keyspace,
            memory: { MachineMemory.tightestForValues },
            notice: { log.write(.warning, .keyFile, $0) }
        )
    }
}

extension RuleTable {
    /// Where the rules store keys: in files, or elsewhere.
    var fileRules: [FileRule] {
        rules.flatMap { rule -> [FileRule] in
            switch rule.backing {
            case nil: return []
            case .file(let directory, let isShared):
                let form = form(of: rule)
                return rule.keys.map {
                    FileRule(keys: $0, directory: directory, isShared: isShared, form: form)
                }
            default: return rule.keys.map { FileRule(keys: $0, directory: nil) }
            }
        }
    }
}
