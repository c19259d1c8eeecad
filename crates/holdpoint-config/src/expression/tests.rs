use std::time::{Duration, Instant};

use holdpoint_core::json::CanonicalJson;

use super::*;

/// What an expression says of a call with these arguments: `true`, `false`, or why it cannot be worked out.
fn says(expression: &str, args: &str) -> String {
    let args = CanonicalJson::parse(args).unwrap();
    let facts = Facts { agent: "trader", tool: "execute_trade", args: &args, session: "s1", actor: "ana" };
    let expression: Expression = expression.parse().unwrap();
    expression.holds_for(&facts).map_or_else(|fault| fault.to_string(), |answer| answer.to_string())
}

/// The problems of an expression as `part: message (hint)`.
fn problems(expression: &str) -> Vec<String> {
    let (read, problems) = Expression::read(expression);
    let is_wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(read.is_none(), is_wrong, "{expression}");
    let shown = |problem: &ExpressionProblem| {
        let part = expression.get(problem.start..problem.end).expect("a place within the text");
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{part}: {}{hint}", problem.message)
    };
    problems.iter().map(shown).collect()
}

#[test]
fn the_documented_rule_multiplies_whole_and_other_numbers() {
    let rule = "double(args.quantity) * double(args.price) > 1000000.0";
    assert_eq!(says(rule, r#"{"quantity": 20000, "price": 61.5}"#), "true");
    assert_eq!(says(rule, r#"{"quantity": 20000, "price": 61}"#), "true");
    assert_eq!(says(rule, r#"{"quantity": 10, "price": 61.5}"#), "false");
    assert_eq!(says(rule, r#"{"quantity": 10}"#), "the call has no `price`");
}

#[test]
fn whole_numbers_are_ints_and_others_doubles() {
    for (expression, expected) in [
        ("args.n * 2 > 1000", "true"),
        ("args.n - 1000 < 0", "true"),
        ("args.n % 2 == 0", "true"),
        ("-args.n < 0", "true"),
        ("type(args.n) == int", "true"),
        ("type(args.x) == double", "true"),
        // Written as 1.0, and the same number as 1.
        ("type(args.one) == int", "true"),
        ("args.n > args.x", "true"),
        ("args.n == 700.0", "true"),
        ("args.n * args.x > 1.0", "`*` does not take values of type int and double"),
        ("args.x * 2.0 > 1.0", "true"),
        ("args.small == -9223372036854775808", "true"),
    ] {
        let args = r#"{"n": 700, "x": 1.5, "one": 1.0, "small": -9223372036854775808}"#;
        assert_eq!(says(expression, args), expected, "{expression}");
    }
}

#[test]
fn whole_numbers_beyond_64_bits_cannot_be_worked_out() {
    let wide = "the arguments have a whole number beyond 64 bits, which expressions cannot compare";
    for number in ["9223372036854775808", "18446744073709551617", "-9223372036854775809", "100000000000000000000"] {
        assert_eq!(says("args.n > 0", &format!(r#"{{"n": {number}}}"#)), wide, "{number}");
    }
    assert_eq!(says("args.n > 0", r#"{"n": 1, "deep": [{"m": 9223372036854775808}]}"#), wide);
    assert_eq!(says("args.n > 0", r#"{"n": 9223372036854775807, "text": "99999999999999999999\"9"}"#), "true");
    assert_eq!(says("args.n > 0.0", r#"{"n": 1e30}"#), "true");
    assert_eq!(
        says("args.n > 0.0", r#"{"n": 1e400}"#),
        "the arguments have a number that is too large for expressions"
    );
    // Who does not look at the arguments is not stopped by them.
    assert_eq!(says("actor == 'ana'", r#"{"n": 99999999999999999999}"#), "true");
}

#[test]
fn what_is_missing_or_of_another_type_is_no_answer() {
    for (expression, expected) in [
        ("args.missing > 1", "the call has no `missing`"),
        ("args.a.b.c == 1", "the call has no `b`"),
        ("has(args.missing) && args.missing > 1", "false"),
        ("args.?missing.orValue(0) > 1", "false"),
        ("args.text > 1", "`>` does not take values of type string and int"),
        ("args.text", "the expression gives a value of type string and not true or false"),
        ("args.list[9] == 1", "a list has fewer elements than the expression expects"),
        ("args.n / 0 == 1", "a division by zero"),
        ("args.n + 9223372036854775807 > 0", "a number is too large for 64 bits"),
        ("int(args.text) > 1", "`int` cannot take its argument"),
        ("args.flag", "true"),
        ("args.nothing == null", "true"),
        ("'x' in args.list", "false"),
        ("'a' in args", "true"),
    ] {
        let args = r#"{"a": {}, "text": "secret", "list": [1, 2], "n": 1, "flag": true, "nothing": null}"#;
        assert_eq!(says(expression, args), expected, "{expression}");
    }
}

#[test]
fn no_argument_is_repeated_in_a_fault() {
    for expression in [
        "args.map[args.key] == 1",
        "args.text + 1 > 2",
        "double(args.text) > 1.0",
        "args.list[args.n] == 1",
        "args.n / (args.n - 42) > 1",
        "args.text < args.n",
        "args.list + 1 == 2",
        "args.text.size() + args.text > 1",
        "!args.text",
        "args.key[args.text] == 1",
        "args.n * 9223372036854775807 > 1",
    ] {
        let args = r#"{"map": {}, "key": "hunter2", "text": "s3cret", "list": ["s3cret"], "n": 42}"#;
        let said = says(expression, args);
        assert!(!["hunter2", "s3cret", "42"].iter().any(|value| said.contains(value)), "{expression}: {said}");
        assert!(said != "true" && said != "false", "{expression}: {said}");
    }
}

#[test]
fn an_expression_knows_the_call_and_its_surroundings() {
    for expression in [
        "agent == 'trader'",
        "tool == \"execute_trade\"",
        "session.startsWith('s')",
        "actor in ['ana', 'bo']",
        "args.path.lowerAscii().endsWith('.env')",
        "args.path.matches('^/tmp/[a-zA-Z]+[.]env$')",
        "args.items.all(item, item.amount < 10)",
        "args.items.exists(item, item.name == 'b')",
        "args.items.exists_one(item, item.amount == 1)",
        "args.items.filter(item, item.amount > 1).size() == 1",
        "args.items.map(item, item.amount) == [1, 2]",
        "size(args.items) == 2 ? true : false",
        "args.items.exists(a, args.items.exists(b, a.amount < b.amount))",
        "{'x': 1}.x == 1",
    ] {
        let args = r#"{"path": "/tmp/A.ENV", "items": [{"name": "a", "amount": 1}, {"name": "b", "amount": 2}]}"#;
        let args = args.replace("A.ENV", if expression.contains("matches") { "A.env" } else { "A.ENV" });
        assert_eq!(says(expression, &args), "true", "{expression}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (expression, expected) in [
        ("args.x = 1", "=: unexpected `=` (to compare, write `==`)"),
        ("args.x > ", ": the expression ends too early"),
        ("args[", ": the expression ends too early"),
        ("(args.x > 1", ": the expression ends too early"),
        ("args.x > 1)", "): unexpected `)`"),
        ("args.x and args.y", "and: unexpected `and` (write `&&`)"),
        ("'é' == 'é' and true", "and: unexpected `and` (write `&&`)"),
        ("args.x == 'a", "': this text has no closing quote, or an unknown `\\` in it"),
        ("args.x <> 3", ">: unexpected `>` (write `!=`)"),
        ("99999999999999999999 > args.x", "99999999999999999999: `99999999999999999999` is too large a number"),
        ("  ", "  : the expression is empty"),
        ("has(args)", "args: `has` takes a field (write `has(args.name)`)"),
        (
            "'é' == foo",
            "foo: there is no `foo` (an expression knows `args`, `agent`, `tool`, `session` and `actor`; text stands in quotes)",
        ),
        ("arg.x == 1", "arg: there is no `arg` (did you mean `args`?)"),
        ("args.s.startWith('a')", "startWith: there is no function `startWith` (did you mean `startsWith`?)"),
        (
            "now() > 3",
            "now: there is no function `now` (there are bool, bytes, double, dyn, has, int, matches, size, string, type)",
        ),
        ("args.s.matches('(')", "'(': this is not a regular expression, or too large a one"),
        (
            "args.s.matches(args.p)",
            ".: the pattern of `matches` must be text in quotes (to look for text of the arguments, use `contains`)",
        ),
        (
            "size(args.x)",
            "size: the expression gives another value and not true or false (compare it with something, such as `args.amount > 100`)",
        ),
        (
            "'true'",
            "'true': the expression gives a constant and not true or false (compare it with something, such as `args.amount > 100`)",
        ),
        (
            "args.x * 1.5 > 2.0",
            "*: `x` is an int where it is a whole number, and the call is then held (write `double(…)` around it)",
        ),
        ("google.protobuf.Duration{seconds: 1} == 1", "{: messages cannot be made here"),
    ] {
        assert_eq!(problems(expression), [expected], "{expression}");
    }
    assert_eq!(problems("args.x > 1 && foo.y && bar(2)").len(), 2);
    assert_eq!(problems("double(args.x) * 1.5 > 2.0"), Vec::<String>::new());
}

#[test]
fn what_would_take_too_much_work_is_refused_when_it_is_read() {
    let deep = |open: &str, close: &str, count| format!("{}true{}", open.repeat(count), close.repeat(count));
    let triple = "args.a.all(x, args.a.all(y, args.a.all(z, x + y + z > 0)))";
    for (name, expression) in [
        ("long", format!("args.x == '{}'", "x".repeat(5_000))),
        ("brackets", deep("(", ")", 33)),
        ("lists", deep("[", "]", 200)),
        ("signs", deep("!", "", 60)),
        ("spaced signs", deep("! ", "", 60)),
        ("chain", format!("0{} > 1", " + 1".repeat(900))),
        ("fields", format!("args{} == 1", ".a".repeat(900))),
        ("choices", format!("{}true", "args.x ? true : ".repeat(100))),
        ("loops in loops", triple.to_owned()),
        ("many loops", ["args.a.all(x, x > 0)"; 9].join(" && ")),
        ("calls", deep("bool(", ")", 60)),
    ] {
        let started = Instant::now();
        let (read, problems) = Expression::read(&expression);
        assert!(read.is_none(), "{name}");
        assert!(problems.iter().any(|problem| problem.severity == Severity::Error), "{name}");
        assert!(started.elapsed() < Duration::from_secs(20), "{name} took {:?}", started.elapsed());
    }
}

#[test]
fn long_chains_of_conditions_are_fine() {
    let conditions: Vec<String> = (0..100).map(|n| format!("args.x != {n}")).collect();
    assert_eq!(says(&conditions.join(" && "), r#"{"x": 1000}"#), "true");
    assert_eq!(says(&format!("args.x in [{}]", vec!["1"; 500].join(",")), r#"{"x": 2}"#), "false");
}

#[test]
fn large_arguments_are_not_looped_over_without_end() {
    let costly = "the arguments have too many values for the loops of the expression";
    let numbers = |count: usize| format!(r#"{{"a": [{}]}}"#, vec!["1"; count].join(","));
    let nested = "args.a.all(x, args.a.all(y, x + y > 0))";
    assert_eq!(says(nested, &numbers(50)), "true");
    assert_eq!(says(nested, &numbers(2_000)), costly);
    assert_eq!(says("args.a.all(x, x > 0)", &numbers(1_000)), "true");
    assert_eq!(says("args.a.map(x, args.a + args.a).size() > 0", &numbers(5_000)), costly);
    let text = format!(r#"{{"a": [{}], "t": "{}"}}"#, vec!["1"; 5_000].join(","), "x".repeat(200_000));
    assert_eq!(says("args.a.all(x, args.t.contains(string(x)))", &text), costly);
    assert_eq!(says("args.t.contains('y')", &text), "false");
    let huge = format!(r#"{{"t": "{}"}}"#, "x".repeat(300_000));
    assert_eq!(says("args.t.contains('y')", &huge), "the arguments are larger than expressions look at");
}

#[test]
fn the_work_that_is_let_through_is_short() {
    let numbers = |count: usize| format!(r#"{{"a": [{}]}}"#, vec!["1"; count].join(","));
    let expressions = [
        "args.a.all(x, args.a.all(y, x + y > 0))",
        "args.a.map(x, args.a + args.a).size() > 0",
        "args.a.map(x, x).filter(x, x > 0).size() > 0",
        "args.a.all(x, string(x).matches('^[a-z0-9]{1,200}$'))",
    ];
    for expression in expressions {
        for count in [10, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400] {
            let started = Instant::now();
            says(expression, &numbers(count));
            assert!(started.elapsed() < Duration::from_secs(10), "{expression} {count}: {:?}", started.elapsed());
        }
    }
}

#[test]
fn deep_expressions_need_little_stack() {
    let deep = format!("{}args.x > 0{}", "(".repeat(30), ")".repeat(30));
    let nested = format!("{}args.x{} > 0", "int(".repeat(30), ")".repeat(30));
    let sum = format!("args.x{} > 0", " + 1".repeat(30));
    let expressions: Vec<Expression> = [deep, nested, sum].iter().map(|text| text.parse().unwrap()).collect();
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    let run = move || {
        let args = CanonicalJson::parse(r#"{"x": 1}"#).unwrap();
        let facts = Facts { agent: "a", tool: "t", args: &args, session: "s", actor: "b" };
        expressions.iter().all(|expression| expression.holds_for(&facts) == Ok(true))
    };
    assert!(small.spawn(run).unwrap().join().unwrap());
}

#[test]
fn an_expression_is_stored_as_its_text() {
    let expression: Expression = "args.amount > 100".parse().unwrap();
    let stored = serde_json::to_string(&expression).unwrap();
    assert_eq!(stored, r#""args.amount > 100""#);
    assert_eq!(serde_json::from_str::<Expression>(&stored).unwrap(), expression);
    assert!(serde_json::from_str::<Expression>(r#""args.amount >""#).is_err());
}
