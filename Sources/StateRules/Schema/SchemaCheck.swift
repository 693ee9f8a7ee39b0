import StateEngine
import StateJSON

/// Collects the issues of one value.
struct SchemaCheck {
    /// The most issues reported for one value.
    private static let issueLimit = 16
    /// How many schemas may be checked inside each other; the check is recursive.
    private static let depthLimit = 2_000

    let table: SchemaTable
    var issues: [ValidationIssue] = []
    var path: [String] = []
    /// The steps that all patterns and combined schemas together may still take.
    private(set) var steps = RegularExpression.stepLimit
    /// Whether only the result counts, not what is wrong.
    private(set) var isQuiet = false
    private(set) var hasFailed = false
    /// Whether the check was given up, which is an issue whatever the schema says.
    private(set) var isOver = false
    /// Above 0 in schemas that visit parts of the value which others visit too.
    private var repeats = 0
    private var depth = 0
    /// Whether the value is a string without quotes.
    private var isText = false

    init(_ table: SchemaTable) { self.table = table }

    /// Whether nothing that follows matters.
    var isDone: Bool {
        isOver || (isQuiet ? hasFailed : issues.count >= SchemaCheck.issueLimit)
    }

    mutating func add(_ rule: @autoclosure () -> String, _ message: @autoclosure () -> String) {
        hasFailed = true
        guard !isQuiet, issues.count < SchemaCheck.issueLimit else { return }
        issues.append(
            ValidationIssue(path: path.joined(separator: "/"), rule: rule(), message: message())
        )
    }

    private mutating func add(_ issue: ValidationIssue?) {
        if let issue { add(issue.rule, issue.message) }
    }

    mutating func addType(_ types: SchemaTypes, _ what: @autoclosure () -> String) {
        add("type \(types.description)", "\(what()) not of type \(types.description)")
    }

    // MARK: Limits

    /// Takes steps, and gives the check up if there are not so many.
    mutating func take(_ count: Int) {
        steps -= count
        if steps < 0 {
            giveUp(
                "steps",
                "checking it takes too long (more than \(RegularExpression.stepLimit) steps for one value)"
            )
        }
    }

    private mutating func giveUp(_ rule: String, _ message: String) {
        isOver = true
        hasFailed = true
        // Of several reasons the first; also for a caller that asked only for the result.
        issues = Array(issues.prefix(SchemaCheck.issueLimit - 1))
        issues.append(ValidationIssue(rule: rule, message: message))
    }

    // MARK: Entry

    /// Checks a value of JSON.
    mutating func checkDocument(_ node: SchemaNode, _ document: JSONDocument) {
        var evaluated: EvaluatedParts?
        check(node, document, 0, &evaluated)
    }

    /// Checks bytes that are a string.
    mutating func checkText(_ node: SchemaNode, _ bytes: Bytes) {
        let keywords = node.keywords
        guard !keywords.isNever else { return add("false", "the schema allows no value here") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return addType(
                keywords.types ?? .string,
                "\(StateError.quoted(bytes)) is not UTF-8 and"
            )
        }
        guard keywords.more == nil else {
            isText = true
            return checkDocument(node, JSONDocument(string: Array(bytes)))
        }
        if let types = keywords.types, !types.contains(.string) {
            return addType(types, "\(StateError.quoted(bytes)) is")
        }
        for choice in keywords.choices where !choice.values.contains(where: { $0.isString(text) }) {
            add(choice.rule, "\(StateError.quoted(bytes)) \(choice.complaint)")
        }
        check(text: text, keywords)
    }

    // MARK: A value of JSON

    /// Checks a value; `evaluated` are its parts that a schema has looked at, nil if nobody asks.
    mutating func check(
        _ node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        guard !isDone else { return }
        let token = document.tokens[index]
        if repeats > 0 {
            take(cost(of: node.keywords, token))
            guard !isOver else { return }
        }
        guard depth < SchemaCheck.depthLimit else {
            return giveUp(
                "depth",
                "more than \(SchemaCheck.depthLimit) schemas apply inside each other"
            )
        }
        depth += 1
        defer { depth -= 1 }
        guard !node.isNever else { return add("false", "the schema allows no value here") }
        if let types = node.keywords.types, !document.isOf(types, index) {
            let shown = isQuiet ? "" : shown(document, index)
            return addType(types, "\(shown) is")
        }
        for choice in node.keywords.choices
        where !choice.values.contains(where: { document.isEqual(index, to: $0) }) {
            let shown = isQuiet ? "" : shown(document, index)
            add(choice.rule, "\(shown) \(choice.complaint)")
        }
        if let more = node.keywords.more {
            check(more.values, of: node, document, index, &evaluated)
        } else {
            checkParts(node, document, index, &evaluated)
        }
    }

    /// What a visit costs that is not the only one.
    private func cost(of keywords: SchemaKeywords, _ token: JSONToken) -> Int {
        let size: Int =
            switch token.kind {
            case .array: Int(token.end)
            case .object: Int(token.end) * (1 + keywords.required.count / 4)
            default: Int(token.end - token.start) / 8
            }
        return 4 + size + keywords.choices.reduce(0) { $0 + $1.values.count }
    }

    private func shown(_ document: JSONDocument, _ index: Int) -> String {
        isText && index == 0
            ? StateError.quoted(document.bytes) : document.description(of: index)
    }

    /// Checks what depends on the kind of the value.
    mutating func checkParts(
        _ node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        let token = document.tokens[index]
        switch token.kind {
        case .null, .true, .false: break
        case .number:
            guard !node.keywords.bounds.isEmpty else { return }
            let digits = document.digits(of: token)
            guard let number = digits.withUnsafeBytes({ ExactNumber($0) }) else { return }
            check(node.keywords.bounds, number, String(decoding: digits, as: UTF8.self))
        case .string, .escapedString: check(text: document.text(of: token), node.keywords)
        case .array: checkArray(node, document, index, &evaluated)
        case .object: checkObject(node, document, index, &evaluated)
        }
    }

    mutating func check(_ bounds: [SchemaKeywords.Bound], _ number: ExactNumber, _ text: String) {
        for bound in bounds where !bound.admits(number) {
            let shown = Array(text.utf8).withUnsafeBytes {
                $0.count > 64 ? StateError.quoted($0) : text
            }
            add("\(bound.kind.rawValue) \(bound.digits)", bound.message(shown))
        }
    }

    private mutating func check(text: String, _ keywords: SchemaKeywords) {
        add(keywords.minimumLength.flatMap { ValidationCheck.minimumLength($0, text) })
        add(keywords.maximumLength.flatMap { ValidationCheck.maximumLength($0, text) })
        if let pattern = keywords.pattern {
            if isQuiet {
                if !matches(pattern, text) { hasFailed = true }
            } else {
                add(ValidationCheck.pattern(pattern, text, within: &steps))
            }
        }
        add(keywords.format.flatMap { $0.issue(of: text) })
    }

    /// Whether `text` matches; false if the steps are used up.
    mutating func matches(_ pattern: RegularExpression, _ text: String) -> Bool {
        guard let isMatch = pattern.matches(text, within: &steps) else {
            take(max(0, steps) + 1)
            return false
        }
        return isMatch
    }

    // MARK: Schemas apart

    /// Whether the value matches, without saying why it does not.
    mutating func passes(
        _ node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) -> Bool {
        let outer = (isQuiet, hasFailed)
        (isQuiet, hasFailed) = (true, false)
        checkAgain(node, document, index, &evaluated)
        let passed = !hasFailed
        (isQuiet, hasFailed) = (outer.0, outer.1 || isOver)
        return passed
    }

    /// Checks a value that another schema checks too.
    mutating func checkAgain(
        _ node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        repeats += 1
        check(node, document, index, &evaluated)
        repeats -= 1
    }

    /// The first issue with `node`, in words.
    mutating func firstIssue(_ node: SchemaNode, _ document: JSONDocument, _ index: Int) -> String?
    {
        var probe = self
        (probe.issues, probe.path, probe.hasFailed) = ([], [], false)
        var evaluated: EvaluatedParts?
        probe.checkAgain(node, document, index, &evaluated)
        steps = probe.steps
        return probe.issues.first?.description
    }
}

/// Which members or elements of a value a schema has looked at, in their order.
struct EvaluatedParts {
    private(set) var flags: [Bool]

    init(count: Int) { flags = Array(repeating: false, count: count) }

    mutating func insert(_ index: Int) { flags[index] = true }

    mutating func insertAll() { flags = Array(repeating: true, count: flags.count) }

    mutating func formUnion(_ other: EvaluatedParts) {
        for index in flags.indices where other.flags[index] { flags[index] = true }
    }
}
