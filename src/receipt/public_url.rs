//! The address by which the service reaches a receiver.

use reqwest::Url;
use thiserror::Error;

/// A public address that can't be one. What was given is not repeated: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`public_url` {fault}: write it as `https://host/path`")]
pub struct PublicUrlError {
    /// What is wrong with it.
    pub fault: &'static str,
}

/// A checked public address, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Checks it: http or https, a host, and nothing after the path, since a token comes there.
    pub fn parse(text: &str) -> Result<Self, PublicUrlError> {
        let fault = |fault| Err(PublicUrlError { fault });
        let Ok(url) = text.parse::<Url>() else { return fault("is not a URL") };
        if !matches!(url.scheme(), "http" | "https") {
            return fault("is neither http nor https");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return fault("has a query or a fragment, where a token would not be found");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return fault("holds a user or a password, which would go out with each canary");
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// The address at which a message with this token arrives.
    pub fn with(&self, token: &str) -> String {
        format!("{}/{token}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_appended_to_whatever_path_there_is() {
        for (given, whole) in [
            ("https://canary.example", "https://canary.example/t"),
            ("https://canary.example/", "https://canary.example/t"),
            ("http://127.0.0.1:8080/hooks/in/", "http://127.0.0.1:8080/hooks/in/t"),
        ] {
            assert_eq!(PublicUrl::parse(given).unwrap().with("t"), whole);
        }
    }

    #[test]
    fn what_could_not_carry_a_token_is_refused_and_not_repeated() {
        for bad in [
            "",
            "canary.example",
            "/hooks",
            "ftp://canary.example",
            "https://canary.example/?a=b",
            "https://canary.example/#a",
            "https://u:sesame@canary.example",
        ] {
            let error = PublicUrl::parse(bad).unwrap_err().to_string();
            assert!(error.starts_with("`public_url` ") && !error.contains("sesame"), "{error}");
        }
    }
}
