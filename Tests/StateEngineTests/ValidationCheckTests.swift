import StateEngine
import Testing

@Suite struct ValidationCheckTests {
    @Test(
        arguments: [
            "ada@example.org", "a@b", "a.b+c@x-y.z", "!#$%&'*+/=?^_`{|}~-@example.org",
            "\(String(repeating: "l", count: 64))@example.org",
        ]
    )
    func `an e-mail address is one`(text: String) {
        #expect(ValidationCheck.email(text) == nil)
    }

    @Test(
        arguments: [
            "", "@", "ada", "ada@", "@example.org", "a b@example.org", "a@b@c.org", ".a@b.org",
            "a.@b.org", "a..b@c.org", "a@-b.org", "a@b-.org", "a@b..org", "a@b.org.", "a@b_c.org",
            "ä@b.org", "a@b.org\n", "\(String(repeating: "l", count: 65))@example.org",
            "a@\(String(repeating: "l", count: 64)).org",
        ]
    )
    func `what is not an e-mail address is named`(text: String) {
        let issue = ValidationCheck.email(text)
        #expect(issue?.rule == "format email")
        #expect(issue?.message.hasSuffix("is not an e-mail address") == true)
    }

    @Test func `bounds are part of what they bound, and a number that is none is in no bound`() {
        #expect(ValidationCheck.minimum(0, 0) == nil)
        #expect(ValidationCheck.maximum(0, 0) == nil)
        #expect(ValidationCheck.minimum(0.5, 0.4)?.description == "0.4 is below 0.5")
        #expect(ValidationCheck.maximum(1, 2)?.rule == "maximum 1")
        #expect(ValidationCheck.minimum(0, Double.nan) != nil)
        #expect(ValidationCheck.maximum(0, Double.nan) != nil)
    }

    @Test func `lengths are counted in code points`() {
        #expect(ValidationCheck.minimumLength(2, "e\u{301}") == nil)
        #expect(ValidationCheck.maximumLength(1, "😀") == nil)
        #expect(ValidationCheck.maximumLength(1, "ab")?.rule == "maxLength 1")
        #expect(ValidationCheck.minimumLength(1, "")?.rule == "minLength 1")
    }

    @Test func `an issue says where it is, and an error has all of them`() {
        let issues = (0..<7).map { index in
            ValidationIssue(rule: "required", message: "a value is required").within("\(index)")
        }
        #expect(issues[3].within("a").path == "a/3")
        let error = StateError(rejecting: issues)
        #expect(error.code == .rejected)
        #expect(error.issues == issues)
        #expect(error.message.hasPrefix("[0]: a value is required; [1]: "))
        #expect(error.message.hasSuffix("; and 2 more"))
    }
}
