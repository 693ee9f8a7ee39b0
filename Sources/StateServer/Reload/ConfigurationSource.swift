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
    /// Reads the configuration as ``read``, and describes what a reload would do.
    ///
    /// It is called on a separate thread.
    package var preview: @Sendable (ReloadWait) throws(StateError) -> ReloadPreview
    /// Called on the loop thread with the result of a reload, before the reply.
    package var onEnd: @Sendable (Result<ReloadReport, StateError>) -> Void

    package init(
        read: @escaping @Sendable (ReloadWait) throws(StateError) -> Change,
        preview: @escaping @Sendable (ReloadWait) throws(StateError) -> ReloadPreview,
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

        package init(
            rule: Int = 0,
            keys: [UInt8] = [],
            option: String,
            old: String?,
            new: String?
        ) {
            (self.rule, self.keys, self.option) = (rule, keys, option)
            (self.old, self.new) = (old, new)
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
