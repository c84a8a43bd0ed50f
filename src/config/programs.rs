//! Checks of the programs that the daemon starts: their command and variables, and that they can reach none of the
//! daemon's own files.

use std::path::{Path, PathBuf};

use super::Environment;
use super::problem::Problem;
use super::resolve::Review;
use super::secret::SecretRef;
use super::settings::{Config, SecretVariable, ToolKind};
use crate::confining::{ProgramBounds, ProgramReach};
use crate::tools::mcp::McpPlace;
use crate::tools::program::{MEMORY_BYTES_DEFAULT, PROCESSES_DEFAULT, ProgramSettings};

/// A program as people write it.
pub(super) struct ProgramShape {
    pub argv: Vec<String>,
    pub folder: Option<PathBuf>,
    pub environment: Vec<String>,
    pub secrets: Vec<String>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub connect_ports: Vec<u16>,
    pub memory_max_mib: Option<u64>,
    pub processes_max: Option<u32>,
    pub is_trusted: bool,
}

/// Checks the program of a table, for example `tools.refund`.
pub(super) fn resolve_program(
    table: &str,
    shape: ProgramShape,
    review: &mut Review<'_>,
) -> Option<(ProgramSettings, Vec<SecretVariable>)> {
    let base_dir = review.base_dir;
    let mut argv = shape.argv;
    let Some(program) = argv.first_mut().filter(|program| !program.is_empty()) else {
        let what = "must name a program: [\"/usr/local/bin/refund\", \"--currency\", \"EUR\"]";
        review.problem(&format!("{table}.argv"), what);
        return None;
    };
    // A name without a folder is looked up in the system's folders of programs.
    if program.contains('/') {
        *program = base_dir.join(&program).display().to_string();
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        review.problem(
            &format!("{table}.argv"),
            "holds a character that no argument may have",
        );
    }
    let mut variables = Vec::new();
    for line in &shape.environment {
        variables.extend(variable(table, "environment", line, review));
    }
    let mut secrets = Vec::new();
    for line in &shape.secrets {
        let Some((name, reference)) = variable(table, "secrets", line, review) else {
            continue;
        };
        match SecretRef::parse(&reference) {
            Some(secret) => secrets.push(SecretVariable { name, secret }),
            None => review.problem(
                &format!("{table}.secrets"),
                format!("{name} must say where the secret is: {name}=env:NAME, file:PATH or credential:NAME"),
            ),
        }
    }
    let absolute = |paths: Vec<PathBuf>| paths.iter().map(|it| base_dir.join(it)).collect();
    let settings = ProgramSettings {
        argv,
        folder: shape.folder.map(|folder| base_dir.join(folder)),
        variables,
        reach: ProgramReach {
            read: absolute(shape.read),
            write: absolute(shape.write),
            connect_ports: shape.connect_ports,
        },
        bounds: ProgramBounds {
            memory_bytes: shape
                .memory_max_mib
                .map_or(MEMORY_BYTES_DEFAULT, |mib| mib << 20),
            processes: shape.processes_max.unwrap_or(PROCESSES_DEFAULT),
        },
        is_trusted: shape.is_trusted,
    };
    Some((settings, secrets))
}

/// Reads a line NAME=VALUE. A wrong value is not shown: it may be a secret.
fn variable(
    table: &str,
    setting: &str,
    line: &str,
    review: &mut Review<'_>,
) -> Option<(String, String)> {
    let (name, value) = line.split_once('=').unwrap_or((line, "\0"));
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name || value.contains('\0') {
        review.problem(&format!("{table}.{setting}"), "a line is not NAME=VALUE");
        return None;
    }
    Some((name.to_owned(), value.to_owned()))
}

impl Config {
    /// The programs that are started for tools, servers and collections, with the table that configures each.
    pub fn programs(&self) -> impl Iterator<Item = (String, &ProgramSettings)> {
        let tools = self
            .tools
            .iter()
            .filter_map(|(name, tool)| match &tool.kind {
                ToolKind::Command { settings, .. } => {
                    Some((format!("tools.{name}"), &settings.program))
                }
                ToolKind::BuiltIn(_) | ToolKind::Http { .. } => None,
            });
        let servers = self.mcp.iter();
        let servers = servers.filter_map(|(name, server)| match &server.settings.place {
            McpPlace::Program(program) => Some((format!("mcp.{name}"), &**program)),
            McpPlace::Socket(_) | McpPlace::Http { .. } => None,
        });
        let readers = self.knowledge.iter();
        let readers = readers.filter_map(|(name, collection)| {
            let program = collection.pdf.as_ref()?;
            Some((format!("knowledge.{name}.pdf"), program))
        });
        tools.chain(servers).chain(readers)
    }

    /// Problems of programs, collections of documents and folders of skills whose paths reach files of the daemon.
    pub(super) fn reaching_programs(&self, environment: &Environment) -> Vec<Problem> {
        let daemon = &self.daemon;
        let ours = [
            &daemon.data_dir,
            &daemon.runtime_dir,
            &daemon.control_socket,
        ];
        let mut ours: Vec<PathBuf> = ours.into_iter().map(|path| real(path)).collect();
        ours.extend(self.secret_files(environment).iter().map(|path| real(path)));
        ours.push("/proc".into());
        let mut problems = Vec::new();
        for (name, collection) in &self.knowledge {
            for path in &collection.paths {
                let path = real(path);
                let holds = |own: &&PathBuf| own.starts_with(&path) || path.starts_with(own);
                if let Some(own) = ours.iter().find(holds) {
                    let (path, own) = (path.display(), own.display());
                    let key = format!("knowledge.{name}.paths");
                    let what = format!("{path} reaches {own}, which documents must not");
                    problems.push(Problem::new(&key, what).at(self.origins.nearest(&key)));
                }
            }
        }
        for path in &self.skill_folders {
            let path = real(path);
            let holds = |own: &&PathBuf| own.starts_with(&path) || path.starts_with(own);
            if let Some(own) = ours.iter().find(holds) {
                let (path, own) = (path.display(), own.display());
                let what = format!("{path} reaches {own}, which skills must not");
                let origin = self.origins.nearest("skills.folders");
                problems.push(Problem::new("skills.folders", what).at(origin));
            }
        }
        for (table, program) in self.programs() {
            for (setting, path) in named_paths(program) {
                let path = real(path);
                let holds = |own: &&PathBuf| own.starts_with(&path) || path.starts_with(own);
                if let Some(own) = ours.iter().find(holds) {
                    let (path, own) = (path.display(), own.display());
                    let key = format!("{table}.{setting}");
                    let what = format!("{path} reaches {own}, which a program must not");
                    problems.push(Problem::new(&key, what).at(self.origins.nearest(&key)));
                }
            }
        }
        problems
    }
}

/// The files and folders that a program may use, each with its setting.
fn named_paths(program: &ProgramSettings) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let reach = &program.reach;
    let read = reach.read.iter().map(|path| ("read", path));
    let write = reach.write.iter().map(|path| ("write", path));
    let folder = program.folder.iter().map(|path| ("folder", path));
    read.chain(write).chain(folder)
}

/// A path without symbolic links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
