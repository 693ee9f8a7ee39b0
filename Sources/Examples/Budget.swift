import StateContainers

/// One payment, which can check its validity.
struct Payment: Validatable, Codable, Hashable, Sendable {
    @Required var text = ""
    @Min(1) var cents = 0
    /// The process that made it.
    var process: Int32 = 0
}

/// A budget with its payments: what is paid stays within the limit.
struct Budget: Validatable, Codable, Hashable, Sendable {
    @Required var name = ""
    @Min(0) var limit = 0
    /// In seconds since 1970.
    var dateCreated = 0
    var payments: [Payment] = []

    var spent: Int { payments.reduce(0) { $0 + $1.cents } }

    func validate() -> [ValidationIssue] {
        guard spent > limit else { return wrapperIssues() }
        let message = "\(spent) cents are paid of \(limit)"
        return wrapperIssues() + [
            ValidationIssue(path: "payments", rule: "limit", message: message)
        ]
    }
}

/// The root of a budget: payments and transfers are made only here.
///
/// It does not depend on where the budget is stored.
struct Account: Sendable {
    let state: PersistentState<Budget>

    /// Pays, if the limit permits it.
    ///
    /// - Returns: The rest.
    /// - Throws: `rejected`, with the issues; nothing was paid.
    @discardableResult
    func pay(_ cents: Int, for text: String, by process: Int32 = 0) throws(StateError) -> Int {
        try state.modify { budget in
            budget.payments.append(Payment(text: text, cents: cents, process: process))
            return budget.limit - budget.spent
        }
    }

    /// Moves a part of the limit to another account: both change, or neither.
    func move(_ cents: Int, to other: Account) throws {
        try withTransaction { tx in
            tx[state].limit -= cents
            tx[other.state].limit += cents
        }
    }
}

extension Budget {
    /// What must hold for accounts wherever they are stored.
    ///
    /// `open` makes the container of a budget, and makes it again.
    static func script(
        _ checks: Checks,
        _ open: (_ key: Key, _ new: Budget) throws -> PersistentState<Budget>
    ) throws {
        let travel = Account(state: try open("travel", Budget(name: "Travel", limit: 100_00)))
        let food = Account(state: try open("food", Budget(name: "Food", limit: 20_00)))
        checks.expect(try travel.pay(30_00, for: "train") == 70_00, "30 of 100 leave 70")
        expectRejection(checks, "a payment beyond the limit", path: "payments") {
            try travel.pay(80_00, for: "plane")
        }
        expectRejection(checks, "a payment of nothing for nothing", path: "payments/1/text") {
            try travel.pay(0, for: "")
        }
        try travel.move(50_00, to: food)
        checks.expect(
            travel.state.value.limit == 50_00 && food.state.value.limit == 70_00,
            "50 are moved"
        )
        expectRejection(checks, "a transfer of money that is spent", path: "payments") {
            try travel.move(30_00, to: food)
        }
        checks.expect(food.state.value.limit == 70_00, "the other account is unchanged")
        let again = try open("travel", Budget(name: "Travel", limit: 0))
        checks.expect(
            again.value.payments == [Payment(text: "train", cents: 30_00)],
            "only the valid payment is stored"
        )
    }

    private static func expectRejection(
        _ checks: Checks,
        _ what: String,
        path: String,
        _ body: () throws -> Void
    ) {
        do {
            try body()
            checks.expect(false, "\(what) is rejected")
        } catch {
            let issues = (error as? StateError)?.issues ?? []
            print("  \(error)")
            checks.expect(issues.contains { $0.path == path }, "\(what) is rejected, at \(path)")
        }
    }
}
