/// Transactions of several writers.
extension CommitBatch {
    /// The changes from `start` on have several writers.
    func noteCauses(from start: Int, _ entries: borrowing EntryStore) {
        for index in start..<contents.changes.count {
            let cause = entries.causes[contents.changes[index].cause]
            if index > start,
                contents.parts.last?.cause.toOpaque() == Unmanaged.passUnretained(cause).toOpaque()
            {
                contents.parts[contents.parts.count - 1].changeEnd = index + 1
            } else {
                contents.parts.append((index + 1, .passUnretained(cause)))
            }
        }
    }
}

extension CommitBatch.Contents {
    /// The same changes as ``items``, divided where the cause changes.
    var itemsOfOneCause: [CommitBatch.Item] {
        var (divided, next): ([CommitBatch.Item], Int) = ([], 0)
        for item in items {
            while next < parts.count, parts[next].changeEnd <= item.changeEnd {
                let part = parts[next]
                next += 1
                divided.append(
                    CommitBatch.Item(
                        revision: item.revision,
                        changeEnd: part.changeEnd,
                        cause: part.cause
                    )
                )
            }
            divided.append(item)
        }
        return divided
    }
}
