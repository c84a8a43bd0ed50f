//! Writes the notices of all libraries that are in the program: `cargo run --example notices > THIRD-PARTY.txt`.
//!
//! Reads `cargo metadata`, and the files of licences that the libraries' sources have. Of a library that may be used
//! under one of several licences, MIT's text is taken. Texts that differ only in who holds the copyright stand once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A library, and who holds its copyright.
type Holder = (String, Vec<String>);

fn main() {
    let metadata = metadata();
    let packages = packages(&metadata);
    let shipped = shipped(&metadata);
    let mut texts: BTreeMap<String, (String, Vec<Holder>)> = BTreeMap::new();
    let mut bare = Vec::new();
    for id in &shipped {
        let package = packages[id.as_str()];
        if package["source"].is_null() {
            continue;
        }
        let told = format!(
            "{} {} ({})",
            text(package, "name"),
            text(package, "version"),
            text(package, "license")
        );
        let found = licences(package);
        if found.is_empty() {
            let authors = package["authors"].as_array().cloned().unwrap_or_default();
            let authors: Vec<&str> = authors.iter().filter_map(Value::as_str).collect();
            bare.push(format!("{told}: {}", authors.join(", ")));
        }
        for found in found {
            let (holders, body) = split(&found);
            let key: String = body
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .to_lowercase();
            let entry = texts.entry(key).or_insert_with(|| (body, Vec::new()));
            entry.1.push((told.clone(), holders));
        }
    }
    print(&texts, &bare);
}

fn print(texts: &BTreeMap<String, (String, Vec<Holder>)>, bare: &[String]) {
    println!(
        "The libraries in Vocative, whose copyright it is, and under which terms they are used."
    );
    println!("Made by `cargo run --example notices`.");
    for (body, holders) in texts.values() {
        println!("\n{}\n", "=".repeat(78));
        for (told, holders) in holders {
            println!("{told}");
            for holder in holders {
                println!("    {holder}");
            }
        }
        println!("\n{}", body.trim_end());
    }
    println!("\n{}\n", "=".repeat(78));
    println!("Under one of the terms above, by their authors, without a text of their own:\n");
    for told in bare {
        println!("{told}");
    }
}

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform=x86_64-unknown-linux-gnu",
        ])
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo's metadata is JSON")
}

fn packages(metadata: &Value) -> BTreeMap<&str, &Value> {
    let packages = metadata["packages"]
        .as_array()
        .expect("metadata has packages");
    packages.iter().map(|it| (text(it, "id"), it)).collect()
}

/// What the program is made of: normal dependencies of it, and theirs.
fn shipped(metadata: &Value) -> BTreeSet<String> {
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .expect("metadata has a graph");
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|it| (text(it, "id"), it)).collect();
    let root = metadata["resolve"]["root"]
        .as_str()
        .expect("the graph has a root");
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if !found.insert(id.to_owned()) {
            continue;
        }
        let dependencies = nodes[id]["deps"].as_array().map_or(&[][..], Vec::as_slice);
        for dependency in dependencies {
            let kinds = dependency["dep_kinds"]
                .as_array()
                .map_or(&[][..], Vec::as_slice);
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.push(text(dependency, "pkg"));
            }
        }
    }
    found
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

/// The texts of a library's licence: MIT's where it is one of several to choose from, else all there are.
fn licences(package: &Value) -> Vec<String> {
    let manifest = Path::new(text(package, "manifest_path"));
    let folder = manifest.parent().expect("a manifest is in a folder");
    let entries = std::fs::read_dir(folder).expect("the library's source is there");
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let is_licence = |name: &String| {
        let name = name.to_uppercase();
        [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "NOTICE",
            "COPYRIGHT",
            "UNLICENSE",
        ]
        .iter()
        .any(|begin| name.starts_with(begin))
    };
    let mut names: Vec<String> = names.filter(is_licence).collect();
    names.sort();
    let is_choice =
        text(package, "license").contains("MIT") && !text(package, "license").contains("AND");
    let mit = names
        .iter()
        .find(|name| name.to_uppercase().contains("MIT"))
        .cloned();
    if let (true, Some(mit)) = (is_choice, mit) {
        names = vec![mit];
    }
    let read = |name: &String| std::fs::read_to_string(folder.join(name)).ok();
    names.iter().filter_map(read).collect()
}

/// Who holds the copyright, and the text without them.
fn split(licence: &str) -> (Vec<String>, String) {
    let is_holder = |line: &str| {
        let line = line.trim().to_lowercase();
        (line.starts_with("copyright (c)")
            || line.starts_with("copyright ©")
            || line.starts_with("copyright 2"))
            && !line.contains("[yyyy]")
    };
    let (holders, body): (Vec<&str>, Vec<&str>) = licence.lines().partition(|line| is_holder(line));
    let holders = holders.into_iter().map(|line| line.trim().to_owned());
    (holders.collect(), body.join("\n").trim().to_owned() + "\n")
}
