package import StateEngine

/// A limit of the daemon, by its name below `limits`; in the order in which a reload reports them.
package enum LimitOption: String, CaseIterable, Sendable {
    case valueBytes, clients, watches, steps, globs, trackedKeys, outputBytes, inputBytes,
        queueBytes
    case deferredBytes
    case transactionBytes, replyBytes, files, fileDepth, memoryBytes, frameTimeout, rest, checkEvery
    case reserveBytes, graceSeconds

    /// The unit of a limit.
    package enum Unit: Sendable { case things, bytes, milliseconds }

    package var unit: Unit {
        switch self {
        case .clients, .watches, .steps, .globs, .trackedKeys, .files, .fileDepth, .graceSeconds:
            .things
        case .frameTimeout, .rest, .checkEvery: .milliseconds
        default: .bytes
        }
    }

    /// The default.
    package var standard: Int { form.standard }

    /// The allowed values.
    package var range: ClosedRange<Int> { form.range }

    private var form: (standard: Int, range: ClosedRange<Int>) {
        switch self {
        case .valueBytes: (8 << 20, 1...512 << 20)
        case .clients: (10_000, 1...1_000_000)
        case .watches: (1_000, 1...1_000_000)
        case .steps: (10_000, 1...1_000_000)
        case .globs: (100, 0...1_000_000)
        case .trackedKeys: (1_000_000, 1...100_000_000)
        case .outputBytes: (8 << 20, 64 << 10...1 << 40)
        case .inputBytes: (256 << 20, 64 << 10...1 << 40)
        case .queueBytes: (64 << 20, 64 << 10...1 << 40)
        case .deferredBytes: (4 << 20, 0...1 << 40)
        case .transactionBytes: (64 << 20, 64 << 10...1 << 40)
        case .replyBytes: (256 << 20, 64 << 10...1 << 40)
        case .files: (100_000, 1...100_000_000)
        case .fileDepth: (32, 1...512)
        case .memoryBytes: (512 << 20, 16 << 20...1 << 40)
        case .frameTimeout: (60_000, 0...86_400_000)
        case .rest: (500, 0...10_000)
        case .checkEvery: (86_400_000, 0...31_536_000_000)
        case .reserveBytes: (10 << 20, 0...1 << 40)
        case .graceSeconds: (10, 0...86_400)
        }
    }
}

/// The limits of the daemon: the configured ones, else the defaults.
package struct ConfiguredLimits: Sendable {
    private var configured: [LimitOption: Int] = [:]

    package init() {}

    package subscript(option: LimitOption) -> Int {
        get { configured[option] ?? option.standard }
        set { configured[option] = newValue }
    }

    /// A limit as text, as in a configuration.
    package func text(_ option: LimitOption) -> String {
        let number = Int64(self[option])
        return switch option.unit {
        case .things: String(number)
        case .bytes: Quantity.text(byteCount: number)
        case .milliseconds: Quantity.text(.milliseconds(number))
        }
    }

    /// The largest value that a transaction can hold, with its key.
    package var largestValueByteCount: Int { self[.transactionBytes] - Key.maximumByteCount }

    /// The limits of the keyspace.
    package var keyspace: Limits {
        var limits = Limits()
        limits.valueByteCount = self[.valueBytes]
        limits.queueByteCount = self[.queueBytes]
        limits.transactionByteCount = self[.transactionBytes]
        limits.fileCount = self[.files]
        limits.fileDepth = self[.fileDepth]
        limits.fileStepCount = self[.steps]
        return limits
    }
}
