public import StateContainers

/// Runs all migrations of a codec, each from a sample of its version.
///
/// ```swift
/// @Test func `every version of a profile can still be read`() throws {
///     try MigrationTest(Profile.codec, current: 3, samples: [
///         1: #"{"name":"Ada"}"#,
///         2: #"{"$version":2,"fullName":"Ada"}"#,
///         3: #"{"$version":3,"first":"Ada"}"#,
///     ]) { profile in profile.first == "Ada" }.check()
/// }
/// ```
///
/// Keep the samples as they are when a version is added: they are what users have stored.
public struct MigrationTest<Value: Sendable>: Sendable {
    private let codec: StateCodec<Value>
    private let current: Int
    private let samples: [Int: String]
    private let isRight: @Sendable (Value) -> Bool

    /// Makes a test.
    ///
    /// - Parameters:
    ///   - codec: The codec with the migrations.
    ///   - current: The version that it writes.
    ///   - samples: A stored value of each version, 1 to `current`.
    ///   - isRight: Whether a sample has become the value that it should.
    public init(
        _ codec: StateCodec<Value>,
        current: Int,
        samples: [Int: String],
        _ isRight: @escaping @Sendable (Value) -> Bool
    ) {
        self.codec = codec
        self.current = current
        self.samples = samples
        self.isRight = isRight
    }

    /// Runs the migrations.
    ///
    /// Each version must have a sample, which is read as that version, is migrated to the right
    /// value, and is the same value when it has been written and read again.
    ///
    /// - Throws: ``TestFailure``, naming the version.
    public func check(
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) throws {
        let site = CallSite(fileID, filePath, line, column)
        for version in 1...max(1, current) {
            guard let sample = samples[version] else {
                throw site.failure("there is no sample of version \(version)")
            }
            try check(sample, of: version, at: site)
        }
        for version in samples.keys.sorted() where version < 1 || version > current {
            throw site.failure("there is a sample of version \(version), but \(current) is current")
        }
    }

    private func check(_ sample: String, of version: Int, at site: CallSite) throws {
        let stored: StateCodec<Value>.Stored
        do throws(StateError) { stored = try codec.decodeStored(Array(sample.utf8)) } catch {
            throw site.failure("the sample of version \(version) cannot be read: \(error.message)")
        }
        let read = stored.migratedFrom ?? current
        guard read == version else {
            throw site.failure("the sample of version \(version) is of version \(read)")
        }
        guard isRight(stored.value) else {
            throw site.failure("the sample of version \(version) became \(stored.value)")
        }
        let again = try codec.decodeStored(codec.encode(stored.value))
        guard again.migratedFrom == nil, isRight(again.value) else {
            throw site.failure(
                "the value of version \(version) was written and read again as \(again.value)"
            )
        }
    }
}
