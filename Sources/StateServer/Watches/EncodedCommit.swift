import StateEngine
import StateWire

/// The last encoded commit: its bytes on the wire after the number of the watch.
///
/// A commit is delivered to one watch after the other, mostly with the same content. It is encoded
/// for the first, and copied for the others if they get the same changes in the same form.
///
/// Records are compared by address, so this is valid only during a delivery: ``forget()`` ends it.
final class EncodedCommit {
    /// The parts of each commit that a watch delivers.
    struct Form: Equatable {
        let includesPrevious: Bool
        let includesCause: Bool
    }

    /// A longer commit is encoded again: compared with copying it, that costs little.
    private static let byteLimit = 64 << 10

    private var bytes = ByteBuffer()
    private var revision: Int64 = 0
    private var form = Form(includesPrevious: false, includesCause: false)
    private(set) var changes: [Record] = []

    /// Drops the commit; call this before one of its records may be freed.
    func forget() {
        bytes.removeAll()
        bytes.shrink(to: EncodedCommit.byteLimit)
        changes.removeAll(keepingCapacity: changes.capacity <= 1_024)
    }

    /// Appends revision, changes and, if requested, the cause of the commit.
    ///
    /// - Complexity: O(*n*) in the bytes of the changes; only a copy if the last call was for the
    ///   same.
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
        if !changes.isEmpty { forget() }
        guard bytes.count <= EncodedCommit.byteLimit else { return }
        self.bytes.append(bytes)
        self.revision = revision
        self.form = form
        // Do not keep the array itself: its owner continues to fill it.
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
    /// A value of a push; nil: the key was deleted.
    mutating func writeValue(_ value: Bytes?) {
        if let value { writeBulk(value) } else { writeNull(.resp3) }
    }
}
