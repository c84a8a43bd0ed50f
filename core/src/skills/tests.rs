#![allow(clippy::unwrap_used)]

use super::*;

fn files(files: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    let owned = |it: &(&str, &[u8])| (it.0.to_owned(), it.1.to_vec());
    files.iter().map(owned).collect()
}

fn of(skill_file: &str) -> Result<Skill, String> {
    Skill::read("pdf-forms", files(&[(SKILL_FILE, skill_file.as_bytes())]))
}

#[test]
fn heads_as_others_write_them_are_read() {
    let long = "Fills forms. Use it for PDFs: all.";
    for head in [
        format!("name: pdf-forms\ndescription: {long}"),
        format!("name: \"pdf-forms\" # its name\ndescription: \"{long}\""),
        "name: 'pdf-forms'\ndescription: 'Fills forms. Use it\n  for PDFs: all.'".to_owned(),
        "name: pdf-forms\ndescription: >-\n  Fills forms.\n  Use it for PDFs: all.".to_owned(),
        "name: pdf-forms\ndescription: |\n  Fills forms.\n\n  Use it for PDFs: all.\n".to_owned(),
        format!(
            "# a comment\nname: pdf-forms\nlicense: Apache-2.0\nmetadata:\n  author: x\n  tags: [a, b]\n\
             allowed-tools: Bash(git:*) Read\nlist:\n- one\ndescription: {long}\ncompatibility: {{any}}"
        ),
    ] {
        for text in [
            format!("---\n{head}\n---\n# Body\n"),
            format!("\u{feff}---\r\n{}\r\n---\r\n", head.replace('\n', "\r\n")),
        ] {
            let skill = of(&text).unwrap();
            assert_eq!(
                (skill.name.as_str(), skill.description.as_str()),
                ("pdf-forms", long),
                "{text}"
            );
        }
    }
}

#[test]
fn what_is_wrong_with_a_head_is_named() {
    let table = [
        ("# Body", "must begin with a line ---"),
        ("---\nname: pdf-forms", "no second line --- ends its head"),
        ("---\nname: pdf-forms\n---", "`description` is missing"),
        ("---\ndescription: x\n---", "`name` is missing"),
        (
            "---\nname: pdf-forms\ndescription:\n---",
            "`description` is missing",
        ),
        (
            "---\nname: pdf-forms\nname: b\n---",
            "line 3: `name` stands there twice",
        ),
        ("---\njust text\n---", "line 2 is not `key: value`"),
        (
            "---\nname: Pdf\ndescription: x\n---",
            "they must be the same",
        ),
        ("---\nname: [a]\ndescription: x\n---", "must be a text"),
        ("---\nname: pdf-forms\ndescription:\n- a\n---", "not a list"),
        (
            "---\nname: pdf-forms\ndescription: \"open\n---",
            "never closed",
        ),
        (
            "---\nname: pdf-forms\ndescription: 'a' b\n---",
            "behind its closing quote",
        ),
    ];
    for (text, expected) in table {
        let why = of(text).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    }
    let long = "ä".repeat(DESCRIPTION_MAX_CHARS + 1);
    let why = of(&format!("---\nname: pdf-forms\ndescription: {long}\n---")).unwrap_err();
    assert!(why.contains("1025 characters, more than 1024"), "{why}");
    let nothing = Skill::read("pdf-forms", files(&[("a.md", b"x")])).unwrap_err();
    assert_eq!(nothing, "it has no SKILL.md");
    let bytes = Skill::read("pdf-forms", files(&[(SKILL_FILE, b"\xff")])).unwrap_err();
    assert_eq!(bytes, "SKILL.md is not UTF-8");
}

#[test]
fn a_name_leads_nowhere() {
    for name in ["a", "pdf-forms", "a1-b2", &"a".repeat(64)] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    let wrong = [
        "",
        ".",
        "..",
        "a/b",
        "A",
        "-a",
        "a-",
        "a--b",
        "ä",
        "a b",
        &"a".repeat(65),
    ];
    for name in wrong {
        assert!(check_name(name).is_err(), "{name}");
    }
}

const HEAD: &[u8] = b"---\nname: pdf-forms\ndescription: x\n---\n";

#[test]
fn a_digest_is_that_of_all_names_and_bytes() {
    let of = |more: &[(&str, &[u8])]| {
        let all = [&[(SKILL_FILE, HEAD)], more].concat();
        Skill::read("pdf-forms", files(&all)).unwrap().digest
    };
    let one = of(&[("a", b"bc")]);
    assert_eq!(one.len(), 64);
    assert_eq!(one, of(&[("a", b"bc")]));
    for other in [
        of(&[]),
        of(&[("ab", b"c")]),
        of(&[("a", b"bd")]),
        of(&[("a", b"bc"), ("b", b"")]),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn what_is_no_text_is_counted_and_not_kept() {
    let all: [(&str, &[u8]); 3] = [(SKILL_FILE, HEAD), ("a.png", b"\x89P\xff"), ("b", b"a\0b")];
    let skill = Skill::read("pdf-forms", files(&all)).unwrap();
    assert_eq!(skill.files["a.png"], SkillFile::Binary(3));
    assert_eq!(skill.files["b"], SkillFile::Binary(3));
}

#[test]
fn a_list_has_an_order_and_an_end() {
    let skill = |name: &str, description: &str| Skill {
        name: name.to_owned(),
        description: description.to_owned(),
        digest: String::new(),
        files: BTreeMap::new(),
    };
    assert_eq!(listed([], "read_skill"), "");
    let (a, b) = (skill("a", "for {{agent}}"), skill("b", "for that"));
    let text = listed([&b, &a], "read_skill");
    assert_eq!(text, listed([&a, &b], "read_skill"));
    assert!(
        text.ends_with(":\n- a: for { {agent}}\n- b: for that"),
        "{text}"
    );
    let long = "ä".repeat(DESCRIPTION_MAX_CHARS);
    let many: Vec<Skill> = (0..SKILLS_MAX)
        .map(|n| skill(&format!("s{n}"), &long))
        .collect();
    let chars = listed(&many, "read_skill").chars().count();
    assert!(chars < LISTED_MAX_CHARS + 500, "{chars}");
}
