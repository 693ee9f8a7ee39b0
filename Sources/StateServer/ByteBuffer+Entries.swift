import StateEngine
import StateWire

/// What is told of a version beside key, value and cause, wherever it comes from.
struct EntryFields {
    var revision: Int64
    var created: Int64
    var version: Int64
    var time: Int64
    var owner: UInt32

    init(_ record: Record) {
        revision = record.revision
        created = record.created
        version = record.version
        time = record.time
        owner = record.owner
    }

    init(_ past: PastVersion) {
        revision = past.revision
        created = past.created
        version = past.version
        time = past.time
        owner = past.owner
    }
}

extension ByteBuffer {
    /// The map of STATE.GET.
    mutating func writeEntry(
        _ fields: EntryFields,
        _ value: Bytes,
        by cause: [UInt8],
        _ durability: String,
        _ version: ProtocolVersion
    ) {
        writeMap(9, version)
        writeBulk("value")
        writeBulk(value)
        writeField("revision", fields.revision)
        writeField("created", fields.created)
        writeField("version", fields.version)
        writeField("time", fields.time)
        writeField("owner", Int64(fields.owner))
        writeBulk("by")
        writeBulk(cause)
        writeBulk("expires")
        writeNull(version)
        writeField("durability", durability)
    }

    /// A row of STATE.LIST; `cause` only counts in the long form.
    mutating func writeRow(
        _ key: Bytes,
        _ value: Bytes,
        _ fields: EntryFields,
        by cause: [UInt8],
        _ form: Command.ListForm
    ) {
        writeArray(form == .keys ? 1 : form == .long ? 8 : 3)
        writeBulk(key)
        guard form != .keys else { return }
        writeBulk(value)
        writeInteger(fields.revision)
        guard form == .long else { return }
        writeInteger(fields.created)
        writeInteger(fields.version)
        writeInteger(fields.time)
        writeInteger(Int64(fields.owner))
        writeBulk(cause)
    }

    /// A value, or null for a key that is deleted or was absent.
    mutating func writeValue(_ value: Bytes?, _ version: ProtocolVersion) {
        if let value { writeBulk(value) } else { writeNull(version) }
    }
}
