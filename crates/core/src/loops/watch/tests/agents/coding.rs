//! Steps of agents that write programs and run them.

use serde_json::{Value, json};

use super::{Step, call, word};

const THOUGHTS: [&str; 7] = [
    "Next I take care of",
    "That worked. Now for",
    "Good, on to",
    "The following one is",
    "Let me continue with",
    "This leaves a few more, among them",
    "Now I handle",
];

pub(super) fn think(n: usize) -> String {
    format!("{} {}.", THOUGHTS[n % THOUGHTS.len()], word(n))
}

const PATH: &str = "/home/alice/projects/webshop/src/components/checkout/header.tsx";

pub(super) fn edits_ok(n: usize) -> Step {
    call(
        think(n),
        "edit",
        json!({"path": "src/main.rs", "old": format!("let {} = 1;", word(n)), "new": format!("let {} = 2;", word(n))}),
        "ok",
    )
}

pub(super) fn edits_one_file(n: usize) -> Step {
    let old = format!("<{} onClick={{go}} />", word(n));
    let result = format!("The file {PATH} has been updated successfully.");
    call(
        think(n),
        "str_replace",
        json!({"path": PATH, "old_str": old, "new_str": format!("<Link to=\"{}\" />", word(n))}),
        result,
    )
}

pub(super) fn edits_silently(n: usize) -> Step {
    call("", "bash", json!({"command": format!("sed -i 's/{}/{}/g' src/app.py", word(n), word(n + 7))}), "")
}

pub(super) fn ci_with_sleep(n: usize) -> Step {
    match n % 2 {
        0 => call("Waiting for CI.", "bash", json!({"command": "sleep 30"}), ""),
        _ => call(
            "Checking again.",
            "bash",
            json!({"command": "gh run view 4711 --json status"}),
            r#"{"status":"in_progress"}"#,
        ),
    }
}

pub(super) fn ci_table(n: usize) -> Step {
    let result = format!("build\tpass\t1m{:02}s\nlint\tpass\t32s\nintegration\tpending\t0\te2e\tpending\t0", n % 60);
    call("CI is not done.", "bash", json!({"command": "sleep 60 && gh pr checks 12"}), result)
}

pub(super) fn pods(n: usize) -> Step {
    let result = format!(
        "NAME       READY   STATUS              RESTARTS   AGE\nweb-5f6b   0/1     ContainerCreating   0          {}s",
        10 + n * 30
    );
    call("", "bash", json!({"command": "sleep 30; kubectl get pods"}), result)
}

pub(super) fn download(n: usize) -> Step {
    call(
        "",
        "bash",
        json!({"command": "sleep 20; ls -la model.bin"}),
        format!("-rw-r--r-- 1 root root {} Nov 15 10:{:02} model.bin", 1_000_000 + n * 734_003, n % 60),
    )
}

pub(super) fn repl(n: usize) -> Step {
    call("", "python", json!({"code": format!("{} = load('{}.csv')", word(n), word(n))}), "")
}

pub(super) fn searches(n: usize) -> Step {
    match n % 9 {
        8 => call(
            think(n),
            "grep",
            json!({"pattern": "retry_limit", "path": format!("services/{}", word(n))}),
            format!("services/{}/config.py:12:retry_limit = 3", word(n)),
        ),
        _ => call(
            think(n),
            "grep",
            json!({"pattern": "retry_limit", "path": format!("services/{}", word(n))}),
            "No matches found",
        ),
    }
}

pub(super) fn test_by_test(n: usize) -> Step {
    let left = 30 - n / 2;
    match n % 2 {
        0 => edits_one_file(n),
        _ => call(
            "Run the tests.",
            "bash",
            json!({"command": "npm test"}),
            format!(
                "  {} passing (2s)\n  {left} failing\n\n  1) checkout\n       {}:\n     AssertionError: expected {n} to equal {}",
                40 - left,
                word(n),
                n + 1
            ),
        ),
    }
}

pub(super) fn rewrites_and_tests(n: usize) -> Step {
    let left = 30 - n / 2;
    let file: String = (0..60)
        .map(|line| {
            if line == n / 2 {
                format!("def {}(): return {n}\n", word(n))
            } else {
                format!("def function_{}(): return value\n", word(line))
            }
        })
        .collect();
    match n % 2 {
        0 => call(
            "",
            "write_file",
            json!({"path": "app.py", "content": file}),
            "File written successfully to /workspace/project/app.py (60 lines, all checks skipped)",
        ),
        _ => call(
            "",
            "bash",
            json!({"command": "python -m unittest 2>&1 | tail -3"}),
            format!("Ran 60 tests in 0.{n}s\n\nFAILED (failures={left})"),
        ),
    }
}

pub(super) fn compiles(n: usize) -> Step {
    let result = format!(
        "error[E0425]: cannot find value `{}` in this scope\n  --> src/main.rs:{}:9\nerror: could not compile `app` due to {} previous errors",
        word(n + 1),
        n * 3,
        40 - n
    );
    call(
        think(n),
        "bash",
        json!({"command": format!("sed -i 's/^use {};$/use crate::{};/' src/main.rs && cargo build", word(n), word(n))}),
        result,
    )
}

pub(super) fn lints(n: usize) -> Step {
    let warnings: String = (n..32)
        .map(|left| format!("src/{}.js:{}:1 warning Unexpected console statement no-console\n", word(left), left))
        .collect();
    call(
        think(n),
        "bash",
        json!({"command": format!("sed -i '/console.log/d' src/{}.js && npx eslint src", word(n))}),
        format!("{warnings}\n{} problems (0 errors, {} warnings)", 32 - n, 32 - n),
    )
}

pub(super) fn reads_chunks(n: usize) -> Step {
    let lines: String = (0..30)
        .map(|line| {
            format!("{:6}\tdef {}(self, {}): return self.cache\n", n * 30 + line, word(n + line), word(n * line))
        })
        .collect();
    call("", "bash", json!({"command": format!("cat -n big.py | sed -n '{},{}p'", n * 30, n * 30 + 29)}), lines)
}

pub(super) fn edits_and_reads(n: usize) -> Step {
    let file: String = (0..50)
        .map(|line| {
            if line <= n / 2 {
                format!("const {} = await fetch();\n", word(line))
            } else {
                format!("var {} = fetch();\n", word(line))
            }
        })
        .collect();
    match n % 2 {
        0 => edits_one_file(n),
        _ => call("", "read_file", json!({"path": PATH}), file),
    }
}

pub(super) fn todos(n: usize) -> Step {
    let list: Vec<Value> = (0..20).map(|item| json!({"content": format!("Migrate {}", word(item)), "status": if item < n / 2 { "completed" } else { "pending" }})).collect();
    match n % 2 {
        0 => call(
            "",
            "TodoWrite",
            json!({"todos": list}),
            "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable",
        ),
        _ => edits_one_file(n),
    }
}

pub(super) fn todo_only(n: usize) -> Step {
    let list: String =
        (0..30).map(|item| format!("[{}] Migrate {}\n", if item <= n { "x" } else { " " }, word(item))).collect();
    call(think(n), "complete_task", json!({"task": word(n)}), list)
}

pub(super) fn reminded(n: usize) -> Step {
    let mut step = edits_ok(n);
    step.user =
        "Continue with the task. Remember: always run the tests before you finish, and never ask the user for help."
            .into();
    step
}

pub(super) fn continued(n: usize) -> Step {
    let mut step = reads_chunks(n);
    step.user = "continue".into();
    step
}

pub(super) fn truncated_logs(n: usize) -> Step {
    let line = |at: usize| format!("{} worker {} handled {}\n", at, word(at), word(at * 3));
    let text: String = (n * 50..n * 50 + 40).map(line).collect();
    call(
        "",
        "bash",
        json!({"command": format!("./process {}", word(n))}),
        format!("{text}\n[... 48211 characters omitted ...]\nAll done, exit status 0"),
    )
}

pub(super) fn migrations(n: usize) -> Step {
    call(
        "",
        "bash",
        json!({"command": format!("python manage.py migrate {}", word(n))}),
        "Operations to perform:\n  Apply all migrations\nRunning migrations:\n  No migrations to apply.",
    )
}
