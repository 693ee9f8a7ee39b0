import StateEngine

/// The rules as the history thread uses them: a copy of its own, for every look-up of a rule may change the table that it is in.
///
/// Every call comes under the keyspace's lock.
final class HistoryRules {
    private unowned let core: KeyspaceCore
    /// What was copied.
    private var source: KeyRules?
    private var copy: KeyRules?

    init(_ core: KeyspaceCore) { self.core = core }

    /// What a connection may be told; nil where that is everything.
    ///
    /// Jobs that are under way when the rules change keep those that they began with.
    func visibility(of connection: Connection) -> Visibility? {
        guard let subject = core.restriction(of: connection.subject), let rules = core.rules else {
            return nil
        }
        if source !== rules { (source, copy) = (rules, KeyRules(copying: rules)) }
        return copy.map { Visibility(subject, $0) }
    }
}
