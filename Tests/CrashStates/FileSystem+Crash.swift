/// What a crash leaves of the changes that no sync has kept.
enum CrashKind: Hashable {
    /// All of them: the process ended, the machine did not.
    case whole
    /// None.
    case lost
    /// Each with some probability, whole or sector by sector.
    case some(probability: Double, isTorn: Bool)

    static func random(_ random: inout Random) -> CrashKind {
        switch random.below(10) {
        case 0, 1: .whole
        case 2, 3: .lost
        default:
            .some(
                probability: random.one(of: [0.1, 0.3, 0.5, 0.7, 0.9]),
                isTorn: random.chance(0.7)
            )
        }
    }
}

extension CrashKind: CustomStringConvertible {
    var description: String {
        switch self {
        case .whole: "all of it"
        case .lost: "nothing that was not synced"
        case .some(let probability, let isTorn):
            "\(Int(probability * 100)) % of the rest" + (isTorn ? ", torn at 512 bytes" : "")
        }
    }
}

/// A file system as a start finds it.
struct CrashImage {
    struct File {
        let path: String
        let contents: ModelFile.Contents
        let identity: String?
    }

    /// Each after the one that it is in.
    var directories: [String] = []
    var files: [File] = []
}

extension FileSystem {
    /// What a crash may leave now.
    func image(_ kind: CrashKind, _ random: inout Random) -> CrashImage {
        var image = CrashImage()
        var dice = Dice(kind: kind, order: order, cut: cut(&random), random: random)
        var names = durableNames
        for change in pendingNames where dice.keepsMetadata(event: change.event) {
            for place in change.places { names[place.directory]?[place.name] = place.file }
        }
        add(directory: 0, at: "", names, &dice, &image)
        random = dice.random
        return image
    }

    /// Up to which event the journal has come.
    private func cut(_ random: inout Random) -> Int {
        let events =
            pendingNames.map(\.event)
            + files.flatMap { $0.pending.lazy.filter(\.isMetadata).map(\.event) }
        let sorted = events.sorted()
        let index = random.below(sorted.count + 1)
        return index < sorted.count ? sorted[index] : .max
    }

    private func add(
        directory: Int,
        at path: String,
        _ names: [Int: [String: Int]],
        _ dice: inout Dice,
        _ image: inout CrashImage
    ) {
        for (name, number) in (names[directory] ?? [:]).sorted(by: { $0.key < $1.key }) {
            let place = path.isEmpty ? name : "\(path)/\(name)"
            if files[number].isDirectory {
                image.directories.append(place)
                add(directory: number, at: place, names, &dice, &image)
            } else {
                let contents = dice.contents(of: files[number])
                image.files.append(
                    CrashImage.File(
                        path: place,
                        contents: contents,
                        identity: files[number].identity
                    )
                )
            }
        }
    }
}

/// Decides which changes a crash leaves.
private struct Dice {
    let kind: CrashKind
    let order: FileSystem.Order
    /// The first event that the journal has not reached.
    let cut: Int
    var random: Random

    mutating func keepsMetadata(event: Int) -> Bool {
        switch (kind, order) {
        case (.whole, _): true
        case (.lost, _): false
        case (.some, .journal): event < cut
        case (.some(let probability, _), .strict): random.chance(probability)
        }
    }

    mutating func contents(of file: ModelFile) -> ModelFile.Contents {
        var contents = file.durable
        guard kind != .lost else { return contents }
        for pending in file.pending {
            if pending.isMetadata {
                if keepsMetadata(event: pending.event) { contents.apply(pending.change) }
            } else if case .some(let probability, let isTorn) = kind {
                put(pending.change, probability, isTorn, into: &contents)
            } else {
                contents.apply(pending.change)
            }
        }
        return contents
    }

    private mutating func put(
        _ change: ModelFile.Pending.Change,
        _ probability: Double,
        _ isTorn: Bool,
        into contents: inout ModelFile.Contents
    ) {
        let (offset, bytes): (Int, [UInt8]) =
            switch change {
            case .write(let offset, let bytes): (offset, bytes)
            case .zeros(let offset, let count): (offset, [UInt8](repeating: 0, count: count))
            case .length, .attribute, .mode: (0, [])
            }
        // The length may get there before the bytes.
        if random.chance(0.2) {
            contents.setLength(max(contents.bytes.count, offset + bytes.count))
        }
        guard isTorn, bytes.count <= 1 << 20 else {
            if random.chance(probability) { contents.put(bytes[...], at: offset) }
            return
        }
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + 512 - (offset + start) % 512)
            if random.chance(probability) { contents.put(bytes[start..<end], at: offset + start) }
            start = end
        }
    }
}
