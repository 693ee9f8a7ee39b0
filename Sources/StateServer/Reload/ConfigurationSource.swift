package import StateEngine

/// Where a configuration comes from, for a server that knows nothing of files.
package struct ConfigurationSource: Sendable {
    /// Takes over a configuration that was read: called on the loop thread, under the keyspace's lock, with the options that are in
    /// force.
    package typealias Change = @Sendable (KeyspaceCore, inout ServerOptions) -> ReloadReport

    /// Reads the configuration and changes nothing.
    ///
    /// It is called on a thread of its own: a disk may be slow.
    ///
    /// - Throws: why it cannot be used: the file, the place in it, what was read and what may stand there.
    package var read: @Sendable () throws(StateError) -> Change
    /// Called on the loop thread with what became of a reload, before whoever asked for it is answered.
    package var onEnd: @Sendable (Result<ReloadReport, StateError>) -> Void

    package init(
        read: @escaping @Sendable () throws(StateError) -> Change,
        onEnd: @escaping @Sendable (Result<ReloadReport, StateError>) -> Void
    ) {
        (self.read, self.onEnd) = (read, onEnd)
    }
}

/// What a reload has changed.
package struct ReloadReport: Hashable, Sendable {
    /// An option that is another than before.
    package struct Change: Hashable, Sendable {
        /// The number of its rule, from 1: in the new configuration, or in the old one where the rule is gone; 0 for an option of
        /// the daemon.
        package var rule: Int
        /// The pattern of the rule.
        package var keys: [UInt8]
        /// As it is written: `limits.valueBytes`.
        package var option: String
        /// Nil where nothing said it.
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

    /// What holds from now on.
    package var changed: [Change]
    /// What is said otherwise now, and holds from the next start.
    package var needsRestart: [Change]
    /// The first revision that a commit under the new configuration may have; set by the server.
    package var revision: Int64 = 0

    package init(changed: [Change], needsRestart: [Change]) {
        (self.changed, self.needsRestart) = (changed, needsRestart)
    }
}
