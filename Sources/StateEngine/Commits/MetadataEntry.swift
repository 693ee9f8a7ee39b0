/// A note that a transaction wrote: a few words by name, beside the entries, of which no watcher and no history tells.
///
/// A note is written by a transaction of its own, which takes a revision like any other: its reply waits for storage as all do,
/// and a commit that fails undoes it. No row of the history has that revision: the backing sees to it that the store's
/// revision is not below it at the next start. A backing hands out what it keeps with ``Backing/load(_:)`` and
/// ``Backing/reopen(after:_:)``.
package struct MetadataEntry: Sendable {
    /// The transaction's.
    package let revision: Int64
    /// UTF-8 without control characters.
    package let name: String
    /// Nil where it was taken away.
    package let text: String?
    /// What was there before, to go back to.
    let superseded: MetadataTable.Version?

    /// Bytes of name and text.
    var byteCount: Int { name.utf8.count + (text?.utf8.count ?? 0) }
}

/// Notes: words by name, beside the entries.
extension KeyspaceCore {
    /// The note of this name; nil if it is absent.
    package func metadataText(_ name: String, _ receipt: inout Receipt) -> String? {
        guard let version = metadata[name] else { return nil }
        if version.revision > revisions.durable { receipt.noteRead(version.revision) }
        return version.text
    }

    /// Calls `body` for each note, in no order; everything was looked at.
    package func forEachMetadataEntry(
        _ receipt: inout Receipt,
        _ body: (_ name: String, _ text: String) -> Void
    ) {
        observeAll(&receipt)
        metadata.forEach(body)
    }

    /// Writes a note in the open transaction, or takes it away where `text` is nil; one of each name in a transaction.
    ///
    /// - Throws: ``StateError/Code/tooBig``, for a transaction over its limit, ``StateError/Code/readOnly`` while the
    ///   store is reopened, ``StateError/Code/noSpace`` for a new one if the disk is full, or ``StateError/Code/err`` where the store
    ///   keeps no notes; the transaction stays open as it was.
    package func setMetadata(_ name: String, to text: String?) throws(StateError) {
        guard metadata.isKept else {
            throw StateError(.err, "this store keeps entries alone: it cannot keep '\(name)'")
        }
        let entry = MetadataEntry(
            revision: transaction.revision,
            name: name,
            text: text,
            superseded: metadata[name]
        )
        if let error = admission.refusals.diskShortage, text != nil, metadata[name] == nil {
            throw error
        }
        try checkRoom(entry.byteCount)
        transaction.byteCount += entry.byteCount
        transaction.metadata.append(entry)
        metadata.set(entry)
    }
}
