package import StateEngine

/// The source of a configuration, for a server that does not read files itself.
package struct ConfigurationSource: Sendable {
    /// Applies a configuration that was read: called on the loop thread, under the keyspace's lock,
    /// with the options in force.
    package typealias Change = @Sendable (KeyspaceCore, inout ServerOptions) -> ReloadReport

    /// Reads the configuration and changes nothing.
    ///
    /// It is called on a separate thread, because the disk may be slow. It does all that may wait
    /// for a file in ``ReloadWait/during(_:_:)``.
    ///
    /// - Throws: why it cannot be used: the file, the place in it, what was read and what was
    ///   expected.
    package var read: @Sendable (ReloadWait) throws(StateError) -> Change
    /// Reads the configuration as ``read``, and describes what a reload would do, as far as a
    /// subject may see it.
    ///
    /// It is called on a separate thread.
    package var preview: @Sendable (ReloadWait, Subject) throws(StateError) -> ReloadPreview
    /// Called on the loop thread with the result of a reload, before the reply.
    package var onEnd: @Sendable (Result<ReloadReport, StateError>) -> Void

    package init(
        read: @escaping @Sendable (ReloadWait) throws(StateError) -> Change,
        preview: @escaping @Sendable (ReloadWait, Subject) throws(StateError) -> ReloadPreview,
        onEnd: @escaping @Sendable (Result<ReloadReport, StateError>) -> Void
    ) {
        (self.read, self.preview, self.onEnd) = (read, preview, onEnd)
    }
}

/// What a reload would do.
package struct ReloadPreview: Sendable {
    /// Why it would be refused: each error with its place, and lines that belong to it.
    package var errors: [[String]] = []
    /// What can be used, but is probably not meant.
    package var warnings: [[String]] = []
    /// What would change; nothing if there are errors.
    package var report = ReloadReport(changed: [], needsRestart: [])
    /// How many stored values were checked under the new rules.
    package var checkedCount = 0
    package var refusedCount = 0
    /// The first of those that the new rules refuse.
    package var refused: [(key: [UInt8], revision: Int64, issue: String)] = []

    package init() {}
}

/// The changes of a reload.
package struct ReloadReport: Hashable, Sendable {
    /// A changed option.
    package struct Change: Hashable, Sendable {
        /// The number of its rule, from 1: in the new configuration, or in the old one if the rule
        /// is gone; 0 for an option of the daemon.
        package var rule: Int
        /// The pattern of the rule.
        package var keys: [UInt8]
        /// Its name, such as `limits.valueBytes`.
        package var option: String
        /// Nil if it was not set.
        package var old: String?
        package var new: String?
        /// The key, if it is the default of a key without a rule that has one.
        package var defaultOf: [UInt8]?
        /// Whether the log has the values: not if rules hide such keys from anybody.
        package var isLogged = true

        package init(
            rule: Int = 0,
            keys: [UInt8] = [],
            option: String,
            old: String?,
            new: String?,
            defaultOf: [UInt8]? = nil
        ) {
            (self.rule, self.keys, self.option) = (rule, keys, option)
            (self.old, self.new, self.defaultOf) = (old, new, defaultOf)
        }
    }

    /// The changes in force from now on.
    package var changed: [Change]
    /// The changes that only the next start applies.
    package var needsRestart: [Change]
    /// The first revision that a commit under the new configuration may have; set by the server.
    package var revision: Int64 = 0

    package init(changed: [Change], needsRestart: [Change]) {
        (self.changed, self.needsRestart) = (changed, needsRestart)
    }
}

// MARK: Who sees what

extension ReloadReport {
    /// The report as somebody may see it.
    ///
    /// - Parameter sights: What it may see by the rules before and by those after.
    /// - Returns: The report without what is hidden by any of them.
    package func shown(to sights: [Visibility]) -> ReloadReport {
        var report = self
        report.changed = changed.compactMap { $0.shown(to: sights) }
        report.needsRestart = needsRestart.compactMap { $0.shown(to: sights) }
        return report
    }
}

extension ReloadReport.Change {
    /// How much of it may be seen by everybody for whom each of `sights` is true.
    package func part(visibleTo sights: [Visibility], _ target: AccessTarget = .any) -> VisiblePart
    {
        if let defaultOf {
            let mayRead = defaultOf.withUnsafeBytes { key in
                sights.allSatisfy { $0.mayEverReveal(.read, about: key, target) }
            }
            return mayRead ? .everything : .nothing
        }
        guard rule > 0 else { return .everything }
        let part = sights.map { $0.part(ofRuleFor: keys, target) }.min() ?? .everything
        let isAll = part == .withoutValues && !VisiblePart.hasValues(option: option)
        return isAll ? .everything : part
    }

    /// Nil if it names a key that is hidden.
    fileprivate func shown(to sights: [Visibility]) -> ReloadReport.Change? {
        switch part(visibleTo: sights) {
        case .everything: self
        case .withoutValues: withoutValues
        case .nothing: nil
        }
    }

    /// The same with a word for each value.
    package var withoutValues: ReloadReport.Change {
        var change = self
        (change.old, change.new) = (old.map { _ in "(hidden)" }, new.map { _ in "(hidden)" })
        return change
    }
}
