//! Routes and the names that must not be mixed up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use uuid::Uuid;

use super::canary::CanaryKind;
use chrono::{DateTime, SecondsFormat, Utc};

/// The channels that a notification can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Channel {
    Email,
    Sms,
    Webhook,
    Push,
}

impl Channel {
    /// All channels.
    pub const ALL: [Self; 4] = [Self::Email, Self::Sms, Self::Webhook, Self::Push];

    /// The word for it in configuration, labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Webhook => "webhook",
            Self::Push => "push",
        }
    }
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps text that was checked where it came in.
            pub fn from_text(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_newtype!(
    /// The full name of a route, `channel/name`. It is the value of the `route` label.
    RouteName
);
text_newtype!(
    /// The name of a place of observation. Replicas share it.
    Location
);
text_newtype!(
    /// The stable id under which the service accepted a notification. The service's own text.
    NotificationId
);
text_newtype!(
    /// The key under which one canary is submitted, however often.
    IdempotencyKey
);

impl RouteName {
    /// The full name of a route.
    pub fn new(channel: Channel, name: &str) -> Self {
        Self(format!("{}/{name}", channel.word()))
    }

    /// Its channel; nothing where the text is no full name.
    pub fn channel(&self) -> Option<Channel> {
        let (channel, _) = self.0.split_once('/')?;
        Channel::ALL.into_iter().find(|known| known.word() == channel)
    }
}

/// The id of one canary, a UUID of version 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CanaryId(pub Uuid);

impl fmt::Display for CanaryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl IdempotencyKey {
    /// The key of the canary of this route, location, kind and instant: the same after each restart and on each replica.
    ///
    /// It is `dc-` and the first 32 hexadecimal digits of the SHA-256 of the four, each ended by a line feed, which no name may hold.
    pub fn derive(route: &RouteName, location: &Location, kind: CanaryKind, instant: DateTime<Utc>) -> Self {
        let instant = instant.to_rfc3339_opts(SecondsFormat::Millis, true);
        let text = format!("{route}\n{location}\n{}\n{instant}\n", kind.word());
        let digest = hex::encode(Sha256::digest(text.as_bytes()));
        Self(format!("dc-{}", &digest[..32]))
    }
}
