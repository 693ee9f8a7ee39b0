import StateEngine
import StateModel
import Testing

struct HistoryFloorsTests {
    @Test(arguments: ["x*y", "a[b", #"a\b"#, "plain"])
    func `a gap is never silent: many keys of a directory have a floor, whatever its name`(
        name: String
    ) {
        var floors = HistoryFloors()
        let keys = (0..<20).map { Array("\(name)/\($0)".utf8) }
        floors.raise(keys: keys, to: 7)
        for key in keys { #expect(key.withUnsafeBytes { floors.revision(of: $0) } == 7) }
        let other = Array("other/1".utf8)
        #expect(other.withUnsafeBytes { floors.revision(of: $0) } == 0)
    }
}
