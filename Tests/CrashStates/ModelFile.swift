/// A file or directory of the model: what stable storage has of it, and what was done since.
struct ModelFile {
    /// What a file holds, without its names.
    struct Contents {
        var bytes: [UInt8] = []
        var attributes: [String: [UInt8]] = [:]
        var mode: UInt32 = 0o600
    }

    /// A change that may be on stable storage or not.
    struct Pending {
        enum Change {
            case write(offset: Int, bytes: [UInt8])
            case zeros(offset: Int, count: Int)
            case length(Int)
            case attribute(String, [UInt8]?)
            case mode(UInt32)
        }

        /// The event that made it.
        let event: Int
        let change: Change

        /// Whether it is of the file and not of its bytes: a file system with a journal keeps the
        /// order of these.
        var isMetadata: Bool {
            switch change {
            case .write, .zeros: false
            case .length, .attribute, .mode: true
            }
        }

        /// Whether fdatasync need not keep it.
        var isBesideData: Bool {
            switch change {
            case .write, .zeros, .length: false
            case .attribute, .mode: true
            }
        }
    }

    let isDirectory: Bool
    /// Inode and time of birth of the real file, which a rebuilt state has to have; nil where
    /// nobody asks for them.
    var identity: String?
    /// What it was last opened as.
    var path = ""
    var durable = Contents()
    var pending: [Pending] = []
    /// How long it is for the daemon.
    var byteCount = 0

    init(isDirectory: Bool) { self.isDirectory = isDirectory }

    mutating func add(_ change: Pending.Change, event: Int) {
        pending.append(Pending(event: event, change: change))
        switch change {
        case .write(let offset, let bytes): byteCount = max(byteCount, offset + bytes.count)
        case .zeros(let offset, let count): byteCount = max(byteCount, offset + count)
        case .length(let count): byteCount = count
        case .attribute, .mode: break
        }
    }

    /// Puts what was done before an event on stable storage.
    mutating func flush(before event: Int, where isMeant: (Pending) -> Bool) {
        var rest: [Pending] = []
        for change in pending {
            if change.event < event, isMeant(change) {
                durable.apply(change.change)
            } else {
                rest.append(change)
            }
        }
        pending = rest
    }
}

extension ModelFile.Contents {
    mutating func apply(_ change: ModelFile.Pending.Change) {
        switch change {
        case .write(let offset, let bytes): put(bytes[...], at: offset)
        case .zeros(let offset, let count):
            put([UInt8](repeating: 0, count: count)[...], at: offset)
        case .length(let count): setLength(count)
        case .attribute(let name, let value): attributes[name] = value
        case .mode(let mode): self.mode = mode
        }
    }

    mutating func setLength(_ count: Int) {
        if count < bytes.count { bytes.removeLast(bytes.count - count) }
        if count > bytes.count { bytes += repeatElement(0, count: count - bytes.count) }
    }

    mutating func put(_ new: ArraySlice<UInt8>, at offset: Int) {
        if offset + new.count > bytes.count { setLength(offset + new.count) }
        guard !new.isEmpty else { return }
        bytes.withUnsafeMutableBytes { target in
            new.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + $0.count])
                    .copyMemory(from: $0)
            }
        }
    }
}
