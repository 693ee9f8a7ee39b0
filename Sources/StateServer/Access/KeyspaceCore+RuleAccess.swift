import StateEngine

extension KeyspaceCore {
    /// What somebody is told of a rule: where he may not read its keys, none of the values in it, and nothing at all where it names one.
    func shown(_ rule: RuleDescription, to subject: Subject) -> RuleDescription? {
        let read = rule.keys.withUnsafeBytes { bytes in
            Result { () throws(StateError) in try Pattern(bytes) }
        }
        guard case .success(let pattern) = read else { return nil }
        let mayRead = pattern.literal.withUnsafeBytes { key in
            self.rules?.rule(for: key)?.allows(.read, subject, .any) ?? true
        }
        guard !mayRead else { return rule }
        guard pattern.kind != .key else { return nil }
        var shown = rule
        shown.options.removeAll { $0.name == "default" || $0.name == "schema" }
        return shown
    }
}
