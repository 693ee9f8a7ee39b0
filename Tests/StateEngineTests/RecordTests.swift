import StateEngine
import Testing

/// Fields of a version that need more room than most.
struct WideFields: Sendable {
    var revision: Int64 = 7
    var created: Int64 = 7
    var version: Int64 = 1

    static let all: [WideFields] = [
        WideFields(),
        WideFields(revision: 1 << 40, created: 1 << 40 - (1 << 32 - 1), version: 1 << 32 - 1),
        WideFields(revision: 1 << 40, created: 1 << 40 - 1 << 32, version: 2),
        WideFields(revision: 1 << 62, created: 0, version: 2),
        WideFields(revision: 1 << 33, created: 1 << 33, version: 1 << 32),
        WideFields(revision: 9, created: 3, version: .max),
        // Of a delete whose creation is later than itself, as only damaged rows have it.
        WideFields(revision: 9, created: 10, version: 0),
    ]
}

@Suite struct RecordTests {
    @Test(
        arguments: WideFields.all,
        [(nil as Int64?, false), (nil, true), (99, false), (99, true)]
    )
    func `a version has what it was made with, however large its numbers are`(
        wide: WideFields,
        form: (expires: Int64?, isLoaded: Bool)
    ) {
        let record = make(wide, form)
        defer { record.deallocate() }
        #expect(record.revision == wide.revision)
        #expect(record.created == wide.created)
        #expect(record.version == wide.version)
        #expect(record.storedExpiry == form.expires)
        #expect(Array(record.key) == Array("the key".utf8))
        #expect(record.value.map { Array($0) } == Array("the value, and more".utf8))
        #expect((record.time, record.owner, record.cause) == (1_700_000_000_000, 1_000, 3))
        #expect((record.ordinal, record.operation) == ((1 << 24) - 1, .restore))
        #expect(record.older == nil)
        record.ordinal = 5
        #expect((record.ordinal, record.operation) == (5, .restore))
        #expect((record.created, record.version) == (wide.created, wide.version))
    }

    @Test(arguments: WideFields.all)
    func `a version that was not loaded knows the one that it supersedes`(wide: WideFields) {
        let older = make(WideFields(), (nil, true))
        let record = make(wide, (nil, false))
        defer {
            record.deallocate()
            older.deallocate()
        }
        record.older = older
        #expect(record.older == older)
        #expect(record.version(at: wide.revision) == record)
        #expect((record.revision, record.created) == (wide.revision, wide.created))
        record.older = nil
        #expect(record.older == nil)
    }

    @Test func `a version is counted otherwise if it has room for that`() {
        let fields = WideFields(revision: 1 << 40, created: 1 << 40)
        let wide = make(fields, (nil, false), recounted: true)
        let narrow = make(fields, (99, false))
        defer { for record in [wide, narrow] { record.deallocate() } }
        #expect(narrow.recount(created: 1 << 40 - 5, version: 9))
        #expect((narrow.created, narrow.version) == (1 << 40 - 5, 9))
        #expect(!narrow.recount(created: 3, version: 9))
        #expect(!narrow.recount(created: 1 << 40, version: 1 << 32))
        #expect((narrow.created, narrow.version) == (1 << 40 - 5, 9))
        #expect((narrow.ordinal, narrow.owner) == ((1 << 24) - 1, 1_000))
        #expect(wide.recount(created: 3, version: 1 << 33))
        #expect((wide.created, wide.version) == (3, 1 << 33))
        #expect((wide.revision, wide.ordinal, wide.owner) == (1 << 40, (1 << 24) - 1, 1_000))
    }

    @Test func `a loaded version takes less memory than one that was written`() {
        let loaded = make(WideFields(), (nil, true))
        let written = make(WideFields(), (nil, false))
        let wide = make(WideFields(version: .max), (nil, false))
        defer { for record in [loaded, written, wide] { record.deallocate() } }
        #expect(loaded.footprint < written.footprint)
        #expect(written.footprint < wide.footprint)
    }

    private func make(
        _ wide: WideFields,
        _ form: (expires: Int64?, isLoaded: Bool),
        recounted: Bool = false
    ) -> Record {
        var fields = Record.Fields(
            revision: wide.revision,
            created: wide.created,
            version: wide.version,
            time: 1_700_000_000_000,
            ordinal: (1 << 24) - 1,
            owner: 1_000,
            cause: 3,
            expires: form.expires
        )
        fields.isLoaded = form.isLoaded
        fields.mayBeRecounted = recounted
        fields.operation = .restore
        return Array("the key".utf8).withUnsafeBytes { key in
            Array("the value".utf8).withUnsafeBytes { value in
                Array(", and more".utf8).withUnsafeBytes { suffix in
                    Record.make(fields, key: key, value: value, appending: suffix)
                }
            }
        }
    }
}
