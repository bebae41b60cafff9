//! Words of a command that can be pasted into a shell.

/// A text as one word of a shell: as it is where that is safe, else in single quotes.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn read_back(text: &str) -> String {
        let output = Command::new("/bin/sh").args(["-c", &format!("printf %s {}", word(text))]).output();
        String::from_utf8(output.expect("a shell").stdout).expect("it is text")
    }

    #[test]
    fn what_is_plain_stays_plain() {
        assert_eq!(word("/etc/delivery-canary/monitor.yaml"), "/etc/delivery-canary/monitor.yaml");
        assert_eq!(word("on call"), "'on call'");
        assert_eq!(word(""), "''");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_shell_reads_back_what_was_written(text in "[ -~]{0,20}") {
            prop_assert_eq!(read_back(&text), text);
        }
    }
}
