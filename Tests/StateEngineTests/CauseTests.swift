import StateEngine
import Testing

@Suite struct CauseTests {
    @Test(arguments: [
        ("bash", ""), ("", ""), ("a:b", "c:d"), ("50%", "100%"), ("%3A", "%3A"), ("%25:%", "%25"),
        ("%%3A:", "::"), ("größe", "名前"), ("\u{301}x", "\u{301}y"), ("a\r", "\nb"),
        ("a\u{301}", "z"),
        ("%3A\u{301}", ":\u{301}"),
    ])
    func `what a description says is read back`(command: String, client: String) throws {
        let cause = Cause(uid: 1_000, gid: 100, pid: 4_711, command: command, client: client)
        let read = try #require(Cause(cause.description))
        #expect(read.uid == 1_000 && read.gid == 100 && read.pid == 4_711)
        #expect(Array(read.command.utf8) == Array(command.utf8))
        #expect(Array(read.client.utf8) == Array(client.utf8))
    }

    @Test func `the largest ids are read back`() {
        let cause = Cause(uid: .max, gid: .max, pid: .max, command: "x", client: "y")
        #expect(cause.description == "4294967295:4294967295:2147483647:x:y")
        #expect(Cause(cause.description) == cause)
    }

    @Test(arguments: [
        "", "expiry", "1:2:3:bash", "x:2:3:bash:", "1:-2:3:bash:", "4294967296:0:1:bash:",
        "+1:2:3:bash:", "01:2:3:bash:", "1:2:3:50%:", "1: 2:3:bash:",
    ])
    func `what no description says is no cause`(text: String) {
        #expect(Cause(text) == nil)
    }
}
