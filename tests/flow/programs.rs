//! Programs as tools: what they do, and what they can't.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;

use crate::harness::{Flow, FlowBuilder, Told};

const GENERAL: &str = "#general";
const HOSTILE: &str = include_str!("programs/hostile.pl");

/// A flow whose agent has a program, of Perl, as a tool: its text, and further settings.
async fn with_program(text: &str, settings: &str) -> Flow {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"work\"]")
        .prepare()
        .await;
    add_program(&flow, text, settings);
    flow.start().await;
    flow
}

fn add_program(flow: &Flow, text: &str, settings: &str) {
    let program = flow.directory().join("program.pl");
    std::fs::write(&program, text).unwrap();
    let program = program.display();
    let tool = format!(
        "[tools.work]\nkind = \"command\"\ndescription = \"Works.\"\nargv = [\"perl\", \"{program}\"]\n\
         read = [\"{program}\"]\napproval = \"never\"\n{settings}\n\
         parameters = '{{\"type\": \"object\", \"properties\": {{\"daemon\": {{\"type\": \"integer\"}}, \
         \"data\": {{\"type\": \"string\"}}, \"secret\": {{\"type\": \"string\"}}, \"socket\": {{\"type\": \"string\"}}}}}}'\n\n"
    );
    flow.reconfigure(
        "[channels.slack.acme]\n",
        &format!("{tool}[channels.slack.acme]\n"),
    );
}

/// The program's answer to a call from the command line.
async fn called(text: &str, settings: &str) -> (Flow, Told) {
    let flow = FlowBuilder::default().prepare().await;
    add_program(&flow, text, settings);
    let told = flow.cli(&["tools", "call", "work"]).await;
    (flow, told)
}

/// The result that the model was told last.
fn result(flow: &Flow) -> String {
    let request = flow.model.requests().pop().unwrap();
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.iter().rfind(|message| message["role"] == "tool");
    last.unwrap()["content"].as_str().unwrap().to_owned()
}

async fn ask(flow: &Flow, arguments: Value) -> String {
    let call = ModelReply::tool_call("call_1", "work", arguments);
    flow.model.enqueue(call);
    flow.model.enqueue(ModelReply::text("It is done."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative work");
    flow.slack_reply(GENERAL, &asked).await;
    result(flow)
}

/// Whether this machine can keep a program from the archive; says so loudly where it can't.
async fn is_possible() -> bool {
    let (_flow, told) = called("print 1", "").await;
    let is_possible = told.status == Some(0);
    if !is_possible {
        assert!(told.stdout.contains("can't confine"), "{told:?}");
        eprintln!(
            "SKIPPED: this kernel has no Landlock or no seccomp, so nothing was shown of them"
        );
    }
    is_possible
}

/// What the hostile program reaches when nobody holds it.
fn reached_by_anybody(arguments: &Value, folder: &Path) -> Value {
    use std::io::Write as _;
    let mut child = std::process::Command::new("perl")
        .args(["-e", HOSTILE])
        .current_dir(folder)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{arguments}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether a process runs whose arguments hold a word.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(word))
}

/// A word that no other test's programs have.
fn word() -> String {
    format!("vocative-test-{}", uuid::Uuid::new_v4())
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_program_reaches_nothing_of_the_daemon() {
    if !is_possible().await {
        return;
    }
    let flow = with_program(HOSTILE, "").await;
    let data = flow.directory().join("data");
    let secret: PathBuf = flow.directory().join("secret");
    std::fs::write(&secret, "sk-secret").unwrap();
    let victim = data.join("victim");
    let arguments = json!({
        "daemon": flow.process(),
        "data": data,
        "secret": secret,
        "socket": data.join("vocative.sock"),
    });
    std::fs::write(&victim, "victim").unwrap();
    let told: Value = serde_json::from_str(&ask(&flow, arguments.clone()).await).unwrap();
    assert_eq!(told["data"]["reached"], json!([]), "{told}");
    let variables = json!(["HOME", "PATH", "TMPDIR", "VOCATIVE_CALL_ID"]);
    assert_eq!(told["data"]["variables"], variables);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "victim");
    // All of it can be done: the attempts are real.
    let elsewhere = tempfile::tempdir().unwrap();
    let reached = reached_by_anybody(&arguments, elsewhere.path());
    let all = HOSTILE.matches("=> sub {").count();
    let reached = reached["reached"].as_array().unwrap();
    assert_eq!(reached.len(), all, "{reached:?}");
    flow.wait_until("its folder is removed", || is_empty(&data.join("tools")))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_takes_too_much_is_ended() {
    let fork = "for (1..200) { if ((fork() // -1) == 0) { sleep 60; exit } } sleep 60;";
    let share = "for (1..4) { if ((fork() // -1) == 0) { my $held = 'x' x (1 << 25); sleep 60; exit } } sleep 60;";
    let endless = "$| = 1; while (1) { print 'x' x 65536 }";
    // It is ended also when a reader that is gone does not end it.
    let deaf = "$SIG{PIPE} = 'IGNORE'; $| = 1; while (1) { print STDERR 'x' x 65536 }";
    let cases = [
        (fork, "it started more than 32 processes"),
        ("my $held = 'x' x (1 << 28); print 'held'", "Out of memory"),
        (share, "it used more than 64 MiB of memory"),
        (endless, "it said more than 16 MiB"),
        (deaf, "it said more than 16 MiB"),
        (
            "$SIG{TERM} = 'IGNORE'; sleep 60 while 1",
            "the tool took longer than 1000 ms",
        ),
        ("kill 9, $$", "the program was ended: signal: 9"),
    ];
    for (text, expected) in cases {
        let word = word();
        let settings = "trusted = true\nmemory_max_mib = 64\ntimeout_s = 1\n";
        let timeout = if expected.contains("longer") {
            "1"
        } else {
            "30"
        };
        let settings = settings.replace("timeout_s = 1", &format!("timeout_s = {timeout}"));
        let (flow, told) = called(&format!("# {word}\n$0 = '{word}';\n{text}"), &settings).await;
        assert_eq!(told.status, Some(1), "{expected}: {told:?}");
        assert!(told.stdout.contains(expected), "{expected}: {told:?}");
        flow.wait_until("nothing of it is left", || !runs(&word))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_told_its_arguments_and_tells_its_result() {
    let echo = "my $line = <STDIN>; my $key = $ENV{KEY}; print STDERR \"log\"; print \"{\\\"key\\\": \\\"$key\\\", \\\"args\\\": $line}\"";
    let settings =
        "trusted = true\nenvironment = [\"MODE=fast\"]\nsecrets = [\"KEY=env:FLOW_MODEL_KEY\"]";
    let (flow, told) = called(echo, settings).await;
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let data = json!({"key": "(secret)", "args": {}});
    assert_eq!((&told["exit_code"], &told["data"]), (&json!(0), &data));
    drop(flow);

    let (_flow, told) = called(
        "print 'half'; print STDERR 'no such order'; exit 3",
        "trusted = true",
    )
    .await;
    assert_eq!(told.status, Some(1));
    let failed = r#""exit_code":3,"stderr":"no such order","data":"half""#;
    assert!(told.stdout.contains(failed), "{told:?}");

    let (_flow, told) = called("print 'x' x 200", "trusted = true\nanswer_max_bytes = 50").await;
    assert!(told.stdout.contains(r#""left_out_bytes":150"#), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_its_daemon_and_the_model_is_told_that_it_may_have_acted() {
    let word = word();
    let stubborn = format!(
        "$0 = '{word}'; $SIG{{TERM}} = 'IGNORE'; fork(); open(my $file, '>>', 'begun'); sleep 600 while 1"
    );
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("trusted = true\nfolder = \"{}\"", folder.path().display());
    let mut flow = with_program(&stubborn, &settings).await;
    flow.model
        .enqueue(ModelReply::tool_call("call_1", "work", json!({})));
    flow.model.enqueue(ModelReply::text("I can't say."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative work");
    let begun = folder.path().join("begun");
    flow.wait_until("the program runs", || begun.exists()).await;
    flow.kill().await;
    flow.wait_until("it ends with its daemon", || !runs(&word))
        .await;
    flow.start().await;
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "I can't say.");
    assert!(
        result(&flow).contains("may have acted"),
        "{}",
        result(&flow)
    );

    // A stop ends it, too.
    flow.model
        .enqueue(ModelReply::tool_call("call_2", "work", json!({})));
    std::fs::remove_file(&begun).unwrap();
    flow.slack.say(GENERAL, "ann", "@vocative work again");
    flow.wait_until("the program runs again", || begun.exists())
        .await;
    flow.signal("TERM").await;
    flow.signal("TERM").await;
    flow.ended().await;
    flow.wait_until("it ends with a stop", || !runs(&word))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_is_given_holds_nothing_of_ours() {
    let flow = FlowBuilder::default().prepare().await;
    let data = flow.directory().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let above = flow.directory().display().to_string();
    for settings in [
        format!("write = [\"{above}\"]"),
        format!("folder = \"{}\"", data.join("tools").display()),
        "write = [\"/\"]".to_owned(),
        "write = [\"/proc/1\"]".to_owned(),
    ] {
        let flow = FlowBuilder::default().prepare().await;
        let settings = settings.replace(&above, &flow.directory().display().to_string());
        std::fs::create_dir_all(flow.directory().join("data")).unwrap();
        add_program(&flow, "1", &settings);
        let told = flow.cli(&["check"]).await;
        assert_eq!(told.status, Some(78), "{settings}: {told:?}");
        assert!(told.stderr.contains("which a program must not"), "{told:?}");
    }
}
