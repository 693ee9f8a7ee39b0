/// Replacing rules, and where keys live.
///
/// The rules of the start determine where keys live until the process ends: a backing named by a
/// later rule takes effect at the next start. All other options take effect at once.
extension KeyspaceCore {
    /// Installs the rules of the start.
    ///
    /// Keys that these rules keep in memory move there from storage, as one commit.
    ///
    /// Called before anything is written.
    ///
    /// - Parameters:
    ///   - new: The rules of the start.
    ///   - cause: The cause of the commit.
    ///   - time: Wall time in milliseconds since 1970.
    /// - Returns: How many keys have moved.
    /// - Throws: ``StateError/Code/tooBig`` if they exceed one transaction; no rules are in effect
    ///   then.
    /// - Complexity: O(*n*) in the keys if some are in memory or limited.
    @discardableResult
    package func install(
        rules new: KeyRules,
        cause: InternedCause,
        at time: Int64
    ) throws(StateError) -> Int {
        memoryKeys.patterns = isPersistent ? new.memoryPatterns : []
        memoryKeys.areUsed = !memoryKeys.patterns.isEmpty
        memoryKeys.publishEarly = memoryKeys.areUsed
        memoryKeys.lastRevision = revisions.durable
        memoryKeys.locations = new
        memoryKeys.areInstalled = true
        hold(new)
        return memoryKeys.areUsed ? try moveToMemory(cause, at: time) : 0
    }

    /// Puts other rules into effect.
    ///
    /// If they let storage have keys later, the caller has recorded these patterns
    /// (``MemoryKeysFile``) and revisions are reserved.
    ///
    /// Keys stay where they live, and stored values as they are, even if the new rules would refuse
    /// them.
    ///
    /// - Complexity: O(*n*) in the keys if the old rules or the new ones limit how many there are.
    package func replace(rules new: KeyRules?) {
        memoryKeys.areInstalled = false
        hold(new)
    }

    private func hold(_ new: KeyRules?) {
        // Without rules, a write skips the check.
        admission.rules = new.flatMap { $0.isEmpty ? nil : $0 }
        compacting?.keep(by: new.flatMap(HistoryRules.init))
        let defers = !(new?.deferredPatterns.isEmpty ?? true)
        if isPersistent, defers { memoryKeys.publishEarly = true }
        recount()
    }

    /// Counts all keys anew for new rules.
    func recount() {
        let usages = rules?.usages ?? []
        admission.countsUsage = !usages.isEmpty
        guard admission.countsUsage else { return }
        for usage in usages { usage.reset() }
        entries.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { head in
            count(head, superseding: nil, by: 1)
            return true
        }
    }

    /// Where the rules of the start put a key; nil if no rule names a backing.
    package func backing(of key: Bytes) -> KeyBacking? {
        let locations = memoryKeys.areInstalled ? rules : memoryKeys.locations
        return locations?.rule(for: key)?.settings.backing?.value
    }

    /// The options for a key, for people; its backing is that of the start.
    package func explanation(of key: Bytes) -> [RuleOption] {
        let options = rules?.explanation(of: key) ?? []
        guard !memoryKeys.areInstalled, let locations = memoryKeys.locations else { return options }
        return locations.explanation(of: key).filter { KeyBacking.options.contains($0.name) }
            + options.filter { !KeyBacking.options.contains($0.name) }
    }

    private func moveToMemory(_ cause: InternedCause, at time: Int64) throws(StateError) -> Int {
        var keys: [[UInt8]] = []
        var byteCount = 0
        entries.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { head in
            guard isMisplaced(head) else { return true }
            keys.append(Array(head.key))
            byteCount += head.byteCount
            return true
        }
        do throws(StateError) {
            try move(keys, cause, at: time)
        } catch {
            throw StateError(
                error.code,
                "\(keys.count) keys with \(byteCount) bytes would move to another backing: "
                    + "\(error.message); move them in parts: statectl export PATTERN > FILE, "
                    + "statectl delete PATTERN, restart, statectl import FILE"
            )
        }
        return keys.count
    }

    private func isMisplaced(_ head: Record) -> Bool {
        !head.isDeleted && !head.isVolatile && isInMemory(head.key, rules?.rule(for: head.key))
    }

    private func move(
        _ keys: [[UInt8]],
        _ cause: InternedCause,
        at time: Int64
    ) throws(StateError) {
        guard !keys.isEmpty else { return }
        var receipt = Receipt()
        begin(cause, at: time)
        do throws(StateError) {
            for key in keys {
                try key.withBorrowed { (key) throws(StateError) in try move(key) }
            }
        } catch {
            rollBack()
            throw error
        }
        finish(&receipt)
    }

    private func move(_ key: Bytes) throws(StateError) {
        guard let chain = entries.live.slot(for: key), let head = chain.pointee.leaf else { return }
        try checkRoom(head.byteCount, isVolatile: false)
        var fields = fields(of: head, version: head.version)
        fields.expires = head.storedExpiry
        fields.isVolatile = true
        put(
            Record.make(fields, key: key, value: head.value, in: &entries.pool),
            onto: chain,
            due: head.hasDeadline ? head.knownDeadline ?? .max : nil
        )
    }
}
