/// What a commit does to one file.
struct FileStep: Hashable {
    /// A new file under a temporary name.
    struct Staged: Hashable {
        var path: FilePath
        var stamp: FileStamp
    }

    var target: FilePath
    /// The stamp of the file that is replaced; nil if there is none.
    var before: FileStamp?
    /// The file that replaces it; nil if the key is deleted.
    var staged: Staged?
}
