/// Values by path, and the paths below each directory.
///
/// What is below a directory is found without looking at anything else: whoever makes one directory
/// after the other must not cause a check of all files each time.
struct PathTable<Value> {
    private var values: [FilePath: Value] = [:]
    /// By directory, the paths directly in it that have a value, or below which others have one.
    private var below: [FilePath: Set<FilePath>] = [:]

    var isEmpty: Bool { values.isEmpty }
    var count: Int { values.count }
    /// All values, in no order.
    var all: [FilePath: Value] { values }

    /// - Complexity: O(*n*) in the bytes of the path, times its depth if it is new or removed.
    subscript(path: FilePath) -> Value? {
        get { values[path] }
        set {
            guard let newValue else {
                if values.removeValue(forKey: path) != nil { unlink(path) }
                return
            }
            if values.updateValue(newValue, forKey: path) == nil { link(path) }
        }
    }

    /// The paths directly in a directory that have a value, or below which others have one.
    func children(of directory: FilePath) -> Set<FilePath> { below[directory] ?? [] }

    private mutating func link(_ path: FilePath) {
        var path = path
        while !path.isRoot {
            let directory = path.parent
            guard below[directory, default: []].insert(path).inserted else { return }
            path = directory
        }
    }

    private mutating func unlink(_ path: FilePath) {
        var path = path
        while !path.isRoot, values[path] == nil, below[path] == nil {
            let directory = path.parent
            below[directory]?.remove(path)
            if below[directory]?.isEmpty ?? false { below[directory] = nil }
            path = directory
        }
    }
}
