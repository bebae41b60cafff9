//! The message that we send to ourselves through a receiver's public address. While none arrives, a missing receipt
//! proves nothing: our own name, certificate or ingress may be what is broken.
//!
//! The proof is the arrival, which the receiver hands to its keeper. The answer here only says where the way breaks.

use super::{
    public_url::{PublicUrl, PublicUrlError},
    token::TokenSigner,
};
use crate::{
    clock,
    config::receipt::WebhookReceiver as Settings,
    domain::{route::Location, watch::Way},
    trust,
};
use chrono::TimeDelta;
use reqwest::{Client, StatusCode, redirect};
use std::{error::Error as StdError, fmt, io, time::Duration};
use thiserror::Error;

/// A token to ourselves that is found later, in somebody's access log, proves nothing any more.
const TOKEN_HOLDS: TimeDelta = TimeDelta::seconds(60);

/// Where the way to ourselves is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Break {
    /// The name of the host has no address.
    Name,
    /// Nothing listens there.
    Refused,
    /// The certificate, or the handshake.
    Tls,
    /// No answer within the limit.
    TooSlow,
    /// The connection broke, or what came is not HTTP.
    Broken,
    /// Something answered, and not as our receiver does.
    Answer,
}

impl Break {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Name, Self::Refused, Self::Tls, Self::TooSlow, Self::Broken, Self::Answer];

    /// The word for it in labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Refused => "refused",
            Self::Tls => "tls",
            Self::TooSlow => "too_slow",
            Self::Broken => "broken",
            Self::Answer => "answer",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Name => "does the name of `public_url` resolve here?",
            Self::Refused => "is the ingress up, and the port of `public_url` right?",
            Self::Tls => "is its certificate valid, and its issuer trusted here or in `ca_file`?",
            Self::TooSlow => "do a firewall or the ingress swallow it?",
            Self::Broken => "what stands between the ingress and this receiver?",
            Self::Answer => {
                "does the ingress lead to this receiver, and leave the last segment of the path as it is?"
            }
        }
    }
}

/// Why no message to ourselves could be sent, or what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelfReceiptError {
    /// The public address can't be one.
    #[error(transparent)]
    PublicUrl(#[from] PublicUrlError),
    /// Whom to trust isn't known.
    #[error("receiver `{receiver}`: {fault}")]
    Trust {
        /// The receiver.
        receiver: String,
        /// What is wrong.
        fault: String,
    },
    /// It did not get through.
    #[error("a message to ourselves through the public address of receiver `{receiver}` failed ({}{}): {}", at.word(), Status(*status), at.hint())]
    Failed {
        /// The receiver.
        receiver: String,
        /// Where the way is broken.
        at: Break,
        /// The status of the answer, if there was one.
        status: Option<u16>,
    },
}

struct Status(Option<u16>);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |status| write!(f, " {status}"))
    }
}

/// Sends messages to ourselves through the public address of one receiver.
#[derive(Debug)]
pub struct SelfReceipt {
    receiver: String,
    way: Way,
    public_url: PublicUrl,
    signer: TokenSigner,
    client: Client,
    limit: Duration,
}

impl SelfReceipt {
    /// From this place, of the receiver of this name, whose tokens this signer makes. Reads the system's certificates and `ca_file`.
    pub fn new(
        location: &Location,
        receiver: &str,
        settings: &Settings,
        signer: TokenSigner,
    ) -> Result<Self, SelfReceiptError> {
        let trust_error = |fault| SelfReceiptError::Trust { receiver: receiver.to_owned(), fault };
        let tls = trust::client_config(settings.ca_file.as_deref())
            .map_err(|error| trust_error(error.to_string()))?;
        // The next message must not wait for this one.
        let limit = settings.request_timeout.get().min(settings.self_receipt_every.get());
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(redirect::Policy::none())
            // A connection that is still open would prove neither the name nor the certificate nor the ingress of now.
            .pool_max_idle_per_host(0)
            .connect_timeout(limit)
            .timeout(limit)
            .user_agent(concat!("delivery-canary/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| trust_error(format!("no HTTP client can be made: {}", error.without_url())))?;
        Ok(Self {
            receiver: receiver.to_owned(),
            way: Way::new(location, receiver, &settings.public_url),
            public_url: PublicUrl::parse(&settings.public_url)?,
            signer,
            client,
            limit,
        })
    }

    /// The way that its messages prove.
    pub const fn way(&self) -> Way {
        self.way
    }

    /// The longest time that one message takes.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Sends one message. That it is answered well is not the proof; that it arrives is.
    pub async fn send_once(&self) -> Result<(), SelfReceiptError> {
        let holds = TOKEN_HOLDS + TimeDelta::from_std(self.limit).unwrap_or(TOKEN_HOLDS);
        let token = self.signer.issue_to_self(self.way, &self.receiver, clock::now() + holds);
        let failed = |at, status: Option<StatusCode>| SelfReceiptError::Failed {
            receiver: self.receiver.clone(),
            at,
            status: status.map(|s| s.as_u16()),
        };
        let answer = self.client.post(self.public_url.with(&token)).body("self_receipt\n").send().await;
        let status = answer.map_err(|error| failed(place(&error), None))?.status();
        if status.is_success() { Ok(()) } else { Err(failed(Break::Answer, Some(status))) }
    }
}

/// Where the way is broken, by the causes of the error. Its text is not used: it holds the token.
fn place(error: &reqwest::Error) -> Break {
    if error.is_timeout() {
        return Break::TooSlow;
    }
    let mut found = if error.is_connect() { Break::Name } else { Break::Broken };
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return Break::Tls;
        }
        let io = error.downcast_ref::<io::Error>();
        if let Some(io) = io {
            found = match io.kind() {
                io::ErrorKind::ConnectionRefused => Break::Refused,
                io::ErrorKind::TimedOut => Break::TooSlow,
                // What the resolver says has neither a kind of its own nor a number of the system's.
                _ if io.raw_os_error().is_none() => found,
                _ => Break::Broken,
            };
        }
        // An I/O error passes over what it wraps when it is asked for its source.
        cause = match io.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    found
}
