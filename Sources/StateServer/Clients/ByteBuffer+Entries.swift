import StateEngine
import StateWire

extension ByteBuffer {
    /// The map of STATE.GET.
    mutating func writeEntry(
        _ fields: EntryFields,
        _ value: Bytes,
        by cause: [UInt8],
        _ durability: String,
        _ version: ProtocolVersion,
        _ currency: Mirror.Currency? = nil
    ) {
        writeMap((fields.lifetime == nil ? 9 : 10) + (currency == nil ? 0 : 2), version)
        writeFields(fields, value, by: cause, durability, version)
        guard let currency else { return }
        writeField("current", currency.isCurrent ? 1 : 0)
        writeField("age", currency.age)
    }

    /// The same for an absent key with a default.
    mutating func writeDefault(
        _ value: Bytes,
        from origin: String,
        _ version: ProtocolVersion
    ) {
        writeMap(11, version)
        writeFields(EntryFields.none, value, by: [], "synced", version)
        writeField("default", 1)
        writeField("origin", origin)
    }

    private mutating func writeFields(
        _ fields: EntryFields,
        _ value: Bytes,
        by cause: [UInt8],
        _ durability: String,
        _ version: ProtocolVersion
    ) {
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
        if let expires = fields.expires { writeInteger(expires) } else { writeNull(version) }
        writeField("durability", durability)
        if let lifetime = fields.lifetime { writeField("lifetime", lifetime.rawValue) }
    }

    /// A row of STATE.LIST; `cause` and `location` only matter in the long form.
    mutating func writeRow(
        _ key: Bytes,
        _ value: Bytes,
        _ fields: EntryFields,
        by cause: [UInt8],
        _ form: Command.ListForm,
        _ location: EntryLocation = EntryLocation()
    ) {
        writeArray(form == .keys ? 1 : form == .long ? 10 : 3)
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
        writeBulk(location.backing)
        writeBulk(location.typeName)
    }

    /// The same for an entry in memory.
    mutating func writeRow(_ record: Record, _ form: Command.ListForm, in core: KeyspaceCore) {
        writeRow(
            record.key,
            record.value ?? Bytes(start: nil, count: 0),
            EntryFields(record),
            by: form == .long ? core.causeBytes(of: record) : [],
            form,
            form == .long ? EntryLocation(of: record.key, in: core) : EntryLocation()
        )
    }

    /// A value, or null for a key that was deleted or absent.
    mutating func writeValue(_ value: Bytes?, _ version: ProtocolVersion) {
        if let value { writeBulk(value) } else { writeNull(version) }
    }
}

extension ByteBuffer {
    mutating func writeField(_ name: StaticString, _ number: Int64) {
        writeBulk(name)
        writeInteger(number)
    }

    mutating func writeField(_ name: StaticString, _ text: String) {
        writeBulk(name)
        writeBulk(text)
    }
}
