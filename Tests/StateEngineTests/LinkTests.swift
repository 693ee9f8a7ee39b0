import StateEngine
import StateTestSupport
import Testing

/// What a backing is given links each change to the one that it supersedes.
@Suite struct LinkTests {
    private let stage: Stage

    init() throws { stage = try Stage() }

    @Test func `a change names the change of its key before it, across a delete too`() throws {
        try stage.set("k", "a")
        try stage.commit()
        try stage.transact { (core) throws(StateError) in
            try core.set("other", "x")
            try core.delete("k")
        }
        try stage.commit()
        try stage.set("k", "b")
        try stage.commit()
        #expect(links("k") == ["1.0 after 0.0", "2.1 after 1.0", "3.0 after 2.1"])
    }

    @Test func `changes of one key in one batch follow each other`() throws {
        for value in ["a", "b", "c"] { try stage.set("k", value) }
        try stage.delete("k")
        try stage.set("k", "d")
        try stage.commit()
        #expect(
            links("k") == [
                "1.0 after 0.0", "2.0 after 1.0", "3.0 after 2.0", "4.0 after 3.0", "5.0 after 4.0",
            ]
        )
    }

    @Test func `a change in flight names the one in flight before it`() throws {
        try stage.set("k", "a")
        try stage.publish()
        try stage.set("k", "b")
        try stage.publish()
        try stage.succeed()
        try stage.publish()
        try stage.succeed()
        #expect(links("k") == ["1.0 after 0.0", "2.0 after 1.0"])
    }

    @Test func `after a failure a change names what is durable`() throws {
        try stage.set("k", "a")
        try stage.commit()
        try stage.set("k", "b")
        try stage.publish()
        try stage.fail()
        try stage.set("k", "c")
        try stage.commit()
        #expect(links("k") == ["1.0 after 0.0", "3.0 after 1.0"])
    }

    @Test func `a delete that storage kept is named by what comes after the start`() throws {
        try stage.set("k", "a")
        try stage.delete("k")
        try stage.commit()
        let again = try Stage(HeldBacking(kept: stage.backing.kept))
        #expect(again.durable() == [:])
        #expect(try again.set("k", "b") == 3)
        try again.commit()
        #expect(again.backing.kept.last?.previousRevision == 2)
    }

    private func links(_ key: String) -> [String] {
        stage.backing.kept.filter { $0.key == Array(key.utf8) }.map {
            "\($0.revision).\($0.ordinal) after \($0.previousRevision).\($0.previousOrdinal)"
        }
    }
}
