import StateEngine
import StateWire

/// What was last told of a commit, as it stands on the wire behind the number of the watch.
///
/// Watchers are told of a commit one behind the other, mostly the same: it is formatted for the first of them and
/// copied for the others, as long as they have the same changes of it to tell and tell as much of each.
///
/// Records are compared by where they are, so this is good only while watchers are told: ``forget()`` ends it.
final class EncodedCommit {
    /// How much a watch tells of each commit.
    struct Form: Equatable {
        let includesPrevious: Bool
        let includesCause: Bool
    }

    /// What is longer is formatted anew: next to copying it, that costs little.
    private static let byteLimit = 64 << 10

    private var bytes = ByteBuffer()
    private var revision: Int64 = 0
    private var form = Form(includesPrevious: false, includesCause: false)
    private var changes: [Record] = []

    /// Forgets the commit; to be called before a record of it may be freed.
    func forget() {
        guard !changes.isEmpty else { return }
        bytes.removeAll()
        bytes.shrink(to: EncodedCommit.byteLimit)
        changes.removeAll(keepingCapacity: changes.capacity <= 1_024)
    }

    /// Appends revision, changes and, where it is asked for, the cause of the commit.
    ///
    /// - Complexity: O(*n*) in the bytes of the changes; a copy of them where the last call was for the same.
    func append(
        _ revision: Int64,
        _ changes: [Record],
        _ form: Form,
        in core: KeyspaceCore,
        to output: inout ByteBuffer
    ) {
        if revision == self.revision, form == self.form, changes == self.changes {
            output.append(bytes.bytes)
            return
        }
        let start = output.count
        EncodedCommit.format(revision, changes, form, in: core, to: &output)
        keep(output.bytes.slice(start, output.count), revision, changes, form)
    }

    private func keep(
        _ bytes: Bytes,
        _ revision: Int64,
        _ changes: [Record],
        _ form: Form
    ) {
        forget()
        guard bytes.count <= EncodedCommit.byteLimit else { return }
        self.bytes.append(bytes)
        self.revision = revision
        self.form = form
        // Not the array itself: who made it goes on filling it.
        self.changes.append(contentsOf: changes)
    }

    private static func format(
        _ revision: Int64,
        _ changes: [Record],
        _ form: Form,
        in core: KeyspaceCore,
        to output: inout ByteBuffer
    ) {
        output.writeInteger(revision)
        output.writeArray(changes.count)
        for change in changes {
            output.writeArray(form.includesPrevious ? 3 : 2)
            output.writeBulk(change.key)
            output.writeValue(change.value)
            if form.includesPrevious { output.writeValue(change.older?.value) }
        }
        if form.includesCause { output.writeBulk(core.causeBytes(of: changes[0])) }
    }
}

extension ByteBuffer {
    /// A value of a push; nil: the key is gone.
    mutating func writeValue(_ value: Bytes?) {
        if let value { writeBulk(value) } else { writeNull(.resp3) }
    }
}
