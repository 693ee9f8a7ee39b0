import StateContainers

extension Example {
    static let validationLevels = Example(
        name: "validation-levels",
        summary: "the budget form three times: a Boolean, a list of messages, a separate draft"
    ) { checks in
        let travel = try ValidatedState(Budget(name: "Travel", limit: 100), key: "budget/travel")

        print("  a Boolean")
        var form = Budget()
        checks.expect(!form.validate().isEmpty, "an empty form cannot be sent")
        form.name = "Food"
        checks.expect(form.validate().isEmpty, "with a name it can")

        print("  a list of messages")
        form.limit = -1
        form.payments = [Payment(text: "", cents: 1)]
        let messages = form.validate().map(\.description)
        checks.expect(
            messages == [
                "limit: -1 is below 0", "payments/0/text: a value is required",
                "payments: 1 cents are paid of -1",
            ],
            "each field has its message: \(messages)"
        )

        print("  a draft")
        var draft = Draft(of: travel)
        draft.name = ""
        checks.expect(!draft.isValid && draft.issues(at: "limit").isEmpty, "only the name is bad")
        checks.expect(
            draft.issues(at: "name").map(\.rule) == ["required"],
            "the issue is at the field"
        )
        checks.expect(.rejected, "an invalid draft is not committed") { try draft.commit() }
        checks.expect(travel.value.name == "Travel", "the budget is unchanged")
        draft.name = "Journey"
        try travel ~> { $0.limit = 200 }
        checks.expect(.conflict, "a draft of an older budget is a conflict") { try draft.commit() }
        checks.expect(draft.rebase().limit == 200, "rebase shows the other's change")
        draft.limit = 200
        try await draft.commit()
        checks.expect(travel.value == Budget(name: "Journey", limit: 200), "then it is committed")
        checks.expect(.rejected, "without a draft, an invalid value is refused too") {
            try travel ~> Budget()
        }
    }
}
