/// Metadata that a transaction wrote: a short text by name, beside the entries, which no watcher
/// and no history reports.
///
/// A metadata entry is written by a transaction of its own, which takes a revision like any other:
/// its reply waits for storage, and a failed commit undoes it. No row of the history has that
/// revision; the backing makes sure that the store's revision is not below it at the next start. A
/// backing returns what it keeps from ``Backing/load(_:)``, and what commits that it adopts changed from
/// ``Backing/reopen(after:_:)``.
package struct MetadataEntry: Sendable {
    /// The transaction's revision.
    package let revision: Int64
    /// UTF-8 without control characters.
    package let name: String
    /// Nil if it was removed.
    package let text: String?
    /// The version before it, to restore if it is undone.
    let superseded: MetadataTable.Version?
    /// Whether storage may have it later than readers, as the changes of its transaction.
    let isDeferrable: Bool
    /// Whether nothing undoes it: its transaction was published early.
    var isPublished = false

    /// Bytes of name and text.
    var byteCount: Int { name.utf8.count + (text?.utf8.count ?? 0) }
}

extension MetadataEntry {
    /// An entry that storage gets without a keyspace.
    package init(revision: Int64, name: String, text: String?) {
        self.init(
            revision: revision,
            name: name,
            text: text,
            superseded: nil,
            isDeferrable: false
        )
    }
}

/// Metadata: short texts by name.
extension KeyspaceCore {
    /// The metadata text of this name; nil if it is absent.
    package func metadataText(_ name: String, _ receipt: inout Receipt) -> String? {
        guard let version = metadata[name] else { return nil }
        if version.revision > revisions.durable, !version.isPublished {
            receipt.noteRead(version.revision)
        }
        return version.text
    }

    /// Calls `body` for each metadata entry, in no order; everything counts as read.
    package func forEachMetadataEntry(
        _ receipt: inout Receipt,
        _ body: (_ name: String, _ text: String) -> Void
    ) {
        observeAll(&receipt)
        metadata.forEach(body)
    }

    /// Calls `body` for each metadata entry as it is with the durable revision, in no order.
    package func forEachDurableMetadataEntry(_ body: (_ name: String, _ text: String) -> Void) {
        metadata.forEach(at: revisions.durable, body)
    }

    /// Writes a metadata entry in the open transaction, or removes it if `text` is nil; one of each
    /// name in a transaction.
    ///
    /// If it is deferrable, storage may have it with the changes of the transaction, if it may have
    /// all of these later.
    ///
    /// - Throws: ``StateError/Code/tooBig`` for a transaction over its limit,
    ///   ``StateError/Code/readOnly`` while the store is reopened, ``StateError/Code/noSpace`` for
    ///   a new entry if the disk is full, or ``StateError/Code/invalidRequest`` if the store keeps no
    ///   metadata; the transaction stays open and unchanged.
    package func setMetadata(
        _ name: String,
        to text: String?,
        isDeferrable: Bool = false
    ) throws(StateError) {
        guard metadata.isKept else {
            throw StateError(.err, "this store keeps no metadata: '\(name)' cannot be stored")
        }
        let entry = MetadataEntry(
            revision: transaction.revision,
            name: name,
            text: text,
            superseded: metadata[name],
            isDeferrable: isDeferrable
        )
        if admission.refusals.diskShortage != nil, text != nil, metadata[name] == nil {
            throw admission.refusals.refuse()
        }
        try checkRoom(entry.byteCount)
        transaction.byteCount += entry.byteCount
        transaction.metadata.append(entry)
        metadata.set(entry, above: revisions.durable)
    }

    /// Puts the metadata of the open transaction into the batch.
    func finishMetadata(isPublished: Bool) {
        if isPublished {
            for index in transaction.metadata.indices {
                transaction.metadata[index].isPublished = true
            }
        }
        metadata.finish(transaction.metadata, isPublished: isPublished)
        pending.filling.append(transaction.metadata)
    }
}
