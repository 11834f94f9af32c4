//! Pages of the packages, and the address of the repository in them.

use std::fs;

use crate::{Result, root};

/// Pages that package indices show. Relative links of a Python package's page do not work.
const PAGES: &[&str] = &[
    "crates/relvec/README.md",
    "crates/relvec-predict/README.md",
    "crates/relvec-export/README.md",
    "crates/relvec-cli/README.md",
    "python/README.md",
];

/// Other files that name the repository or the version.
const NAMING: &[&str] = &["pyproject.toml", "CITATION.cff", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"];

/// Checks that every link of a page is absolute, that links into the repository lead to existing files, that all files
/// name one repository, and that CITATION.cff has the version of Cargo.toml.
pub fn check() -> Result {
    let manifest = read("Cargo.toml")?;
    let repository = value(&manifest, "repository = ").ok_or("Cargo.toml names no repository")?;
    let version = value(&manifest, "version = ").ok_or("Cargo.toml has no version")?;
    let mut problems = vec![];
    for page in PAGES {
        let text = read(page)?;
        problems.extend(links(&text).filter_map(|link| problem_of(link, repository)).map(|problem| format!("{page}: {problem}")));
    }
    for file in PAGES.iter().chain(NAMING) {
        let text = read(file)?;
        let others = addresses(&text).filter(|address| !address.starts_with(repository));
        problems.extend(others.map(|address| format!("{file}: {address} is not of the repository in Cargo.toml, {repository}")));
    }
    if value(&read("CITATION.cff")?, "version: ") != Some(version) {
        problems.push(format!("CITATION.cff: expected the version of Cargo.toml, {version}"));
    }
    if problems.is_empty() { Ok(()) } else { Err(format!("the pages of the packages\n    {}", problems.join("\n    "))) }
}

/// Returns the problem of a link of a page, if there is one.
fn problem_of(link: &str, repository: &str) -> Option<String> {
    if !link.starts_with("https://") {
        return Some(format!("`{link}` is not an absolute link"));
    }
    let raw = repository.replace("https://github.com/", "https://raw.githubusercontent.com/");
    let file = link.strip_prefix(&format!("{raw}/main/")).or_else(|| link.strip_prefix(&format!("{repository}/blob/main/")))?;
    (!root().join(file).is_file()).then(|| format!("`{link}` leads to no file of the repository"))
}

/// Returns the targets of links and images.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Returns addresses of repositories, of the form `https://github.com/OWNER/NAME`.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("https://github.com/").map(|(start, _)| {
        let rest = &text[start..];
        &rest[..rest.find(|c: char| c.is_whitespace() || "\"')>`".contains(c)).unwrap_or(rest.len())]
    })
}

/// Returns the text after a key at the start of a line, without quotation marks.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().trim_matches('"'))
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPOSITORY: &str = "https://github.com/somebody/something";

    #[test]
    fn relative_links_are_problems() {
        let text = "![a](docs/a.png) [b](https://example.org) [c](#c)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.png", "https://example.org", "#c"]);
        let problems = links(text).filter_map(|link| problem_of(link, REPOSITORY));
        assert_eq!(problems.collect::<Vec<_>>(), ["`docs/a.png` is not an absolute link", "`#c` is not an absolute link"]);
    }

    #[test]
    fn links_into_the_repository_lead_to_files() {
        assert_eq!(problem_of(&format!("{REPOSITORY}/blob/main/Cargo.toml"), REPOSITORY), None);
        assert!(problem_of(&format!("{REPOSITORY}/blob/main/gone.md"), REPOSITORY).is_some());
        let image = "https://raw.githubusercontent.com/somebody/something/main/gone.png";
        assert!(problem_of(image, REPOSITORY).is_some());
    }

    #[test]
    fn addresses_end_where_a_text_goes_on() {
        let text = "see (https://github.com/a/b/issues) or \"https://github.com/c/d\"";
        assert_eq!(addresses(text).collect::<Vec<_>>(), ["https://github.com/a/b/issues", "https://github.com/c/d"]);
    }

    #[test]
    fn pages_of_this_repository_pass() {
        check().unwrap();
    }
}
