//! What a run's branch is called: words of its message that a person recognises, and a few letters that make it one.

const WORDS_MAX: usize = 5;
const CHARS_MAX: usize = 40;
const MARK_CHARS: usize = 4;

/// `matsu/fix-the-greeting-a1b2`. Letters and digits of any script; everything else parts words.
pub fn branch(message: &str, job: &str) -> String {
    format!("matsu/{}", with_mark(message, job, MARK_CHARS))
}

/// The same with more of the job's id, where the short one is taken.
pub fn longer_branch(message: &str, job: &str) -> String {
    format!("matsu/{}", with_mark(message, job, usize::MAX))
}

fn with_mark(message: &str, job: &str, chars: usize) -> String {
    let mark: Vec<char> = job.chars().filter(char::is_ascii_alphanumeric).collect();
    let mark: String = mark[mark.len().saturating_sub(chars)..].iter().collect();
    let line = message.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words.take(WORDS_MAX) {
        let word = word.to_lowercase();
        if !name.is_empty() && name.chars().count() + word.chars().count() >= CHARS_MAX {
            break;
        }
        name.extend(word.chars().filter(|c| c.is_alphanumeric()).take(CHARS_MAX));
        name.push('-');
    }
    if name.is_empty() { job.replace(|c: char| !c.is_ascii_alphanumeric(), "-") } else { name + &mark }
}

/// A part of a reference's name; ids are made of such characters already.
pub fn reference_part(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_for_people() {
        assert_eq!(branch("Fix the greeting, please!", "job_01h9a1b2"), "matsu/fix-the-greeting-please-a1b2");
        assert_eq!(branch("挨拶を直す\nsecond line", "job_a1b2"), "matsu/挨拶を直す-a1b2");
        assert_eq!(branch("…\n--", "job_a1b2"), "matsu/job-a1b2");
        assert_eq!(longer_branch("Fix", "job_a1b2c3"), "matsu/fix-joba1b2c3");
    }

    #[test]
    fn no_message_makes_a_name_that_git_or_a_shell_reads_otherwise() {
        for message in ["-rf /", "../../etc", "a..b@{1}", "x.lock", "$(touch y) `z`", "\u{202e}evil", &"w".repeat(999)]
        {
            let name = branch(message, "job_a1b2");
            let rest = name.strip_prefix("matsu/").unwrap();
            assert!(rest.chars().all(|c| c.is_alphanumeric() || c == '-') && !rest.starts_with('-'), "{name}");
            assert!(rest.chars().count() <= CHARS_MAX + MARK_CHARS + 1, "{name}");
        }
    }
}
