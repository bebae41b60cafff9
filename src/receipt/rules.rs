//! By what rules a receiver judges a request. Pure: the request, the rules and the time give the judgement.

use super::{
    Arrival,
    content::{ExpectationError, Expectations},
    message::{Message, PlaceError, Spot, checked_pointer, header},
    public_url::{PublicUrl, PublicUrlError},
    sender::{SenderError, SenderProof},
    stats::ArrivalResult,
    token::{Bound, Purpose, SecretError, TokenSigner, Verified, has_form},
};
use crate::{
    config::receipt::{RouteReceipt, TokenIn, WebhookReceiver as Settings},
    domain::{
        evidence::{ArrivalRefusal, Receipt},
        route::{CanaryId, RouteName},
        traceparent::{carries, trace_id},
        watch::Way,
    },
};
use chrono::{DateTime, Utc};
use hyper::header::HeaderName;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use thiserror::Error;

/// Why rules can't be used. Each names the key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RulesError {
    /// The secrets of the tokens.
    #[error(transparent)]
    Secrets(#[from] SecretError),
    /// The proof of the sender.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// The header with the sender's own id of a message.
    #[error("`message_id_header`: {0}")]
    MessageIdHeader(PlaceError),
    /// Where a route's token stands.
    #[error("`token_in` of route `{route}`: {source}")]
    TokenIn {
        /// The route.
        route: RouteName,
        /// What is wrong with the place.
        source: PlaceError,
    },
    /// Where a route's correlation value stands.
    #[error("`correlation` of route `{route}`: {source}")]
    Correlation {
        /// The route.
        route: RouteName,
        /// What is wrong with the place.
        source: PlaceError,
    },
    /// What a route's content must be.
    #[error("`expect` of route `{route}`: {source}")]
    Expectation {
        /// The route.
        route: RouteName,
        /// What is wrong with the expectation.
        source: ExpectationError,
    },
    /// A route is there twice.
    #[error("route `{route}` is given twice to one receiver")]
    Twice {
        /// The route.
        route: RouteName,
    },
    /// The public address.
    #[error(transparent)]
    PublicUrl(#[from] PublicUrlError),
}

/// The rules of one route.
#[derive(Clone, Debug)]
pub struct RouteRules {
    route: RouteName,
    token_in: Option<Spot>,
    expectations: Expectations,
    correlation: Option<Spot>,
}

impl RouteRules {
    /// Checks and compiles.
    pub fn compile(route: RouteName, receipt: &RouteReceipt) -> Result<Self, RulesError> {
        let token_in = match &receipt.token_in {
            TokenIn::Path => Ok(None),
            TokenIn::Header(name) => header(name).map(|name| Some(Spot::Header(name))),
            TokenIn::Pointer(pointer) => checked_pointer(pointer).map(|p| Some(Spot::Pointer(p.to_owned()))),
        };
        let token_in = token_in.map_err(|source| RulesError::TokenIn { route: route.clone(), source })?;
        let expectations = Expectations::compile(&receipt.expect)
            .map_err(|source| RulesError::Expectation { route: route.clone(), source })?;
        let correlation = receipt.correlation.as_ref().map(Spot::compile).transpose();
        let correlation =
            correlation.map_err(|source| RulesError::Correlation { route: route.clone(), source })?;
        Ok(Self { route, token_in, expectations, correlation })
    }

    fn correlated(&self, message: &Message<'_>, canary_id: CanaryId) -> Option<bool> {
        self.correlation.as_ref().map(|spot| {
            message.text_at(spot).is_some_and(|text| match spot {
                Spot::Body => text.to_ascii_lowercase().contains(&trace_id(canary_id)),
                _ => carries(&text, canary_id),
            })
        })
    }
}

/// All rules of one receiver. A reload swaps them whole.
#[derive(Debug)]
pub struct Rules {
    receiver: String,
    signer: TokenSigner,
    sender: SenderProof,
    message_id: HeaderName,
    public_url: PublicUrl,
    routes: HashMap<Bound, RouteRules>,
    token_spots: Vec<Spot>,
}

/// The judgement of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// A canary arrived.
    Canary(Arrival),
    /// A message to ourselves arrived, by this way.
    SelfReceipt(Way),
    /// It is refused.
    Refused(ArrivalResult),
}

impl Rules {
    /// Checks and compiles.
    pub fn compile(receiver: &str, settings: &Settings, routes: Vec<RouteRules>) -> Result<Self, RulesError> {
        let mut token_spots: Vec<Spot> = Vec::new();
        let mut by_bound = HashMap::with_capacity(routes.len());
        for rules in routes {
            if let Some(spot) = rules.token_in.as_ref().filter(|spot| !token_spots.contains(*spot)) {
                token_spots.push(spot.clone());
            }
            if let Some(other) = by_bound.insert(Bound::to_route(&rules.route), rules) {
                return Err(RulesError::Twice { route: other.route });
            }
        }
        // Headers before pointers: a body is parsed only where nothing else has a token.
        token_spots.sort_by_key(|spot| matches!(spot, Spot::Pointer(_)));
        Ok(Self {
            receiver: receiver.to_owned(),
            signer: TokenSigner::new(&settings.token_secrets)?,
            sender: SenderProof::compile(&settings.sender)?,
            message_id: header(&settings.message_id_header).map_err(RulesError::MessageIdHeader)?,
            public_url: PublicUrl::parse(&settings.public_url)?,
            routes: by_bound,
            token_spots,
        })
    }

    /// The name of the receiver.
    pub fn receiver(&self) -> &str {
        &self.receiver
    }

    /// The signer of this receiver's tokens.
    pub fn signer(&self) -> &TokenSigner {
        &self.signer
    }

    /// The receiver's public address.
    pub fn public_url(&self) -> &PublicUrl {
        &self.public_url
    }

    /// What the path alone says: the token in its last segment, or nothing if none stands there.
    ///
    /// Only the last segment counts, since an ingress may rewrite what is before it.
    pub fn token_of_path(&self, path: &str, now: DateTime<Utc>) -> Result<Option<Verified>, ArrivalResult> {
        match path.rsplit('/').next().filter(|last| has_form(last)) {
            Some(token) => Ok(Some(self.signer.verify(token, now)?)),
            None if self.token_spots.is_empty() => Err(ArrivalResult::MalformedToken),
            None => Ok(None),
        }
    }

    /// Judges a whole request. `arrival_id` tells this arrival from any other.
    pub fn judge(
        &self,
        token_of_path: Option<Verified>,
        message: &Message<'_>,
        now: DateTime<Utc>,
        arrival_id: String,
    ) -> Judgement {
        let token = token_of_path.map_or_else(|| self.token_of_message(message, now), Ok);
        let judged = token.and_then(|token| match token.purpose {
            Purpose::Canary => self.canary(token, message, now, arrival_id),
            Purpose::SelfReceipt => self.self_receipt(token),
        });
        judged.unwrap_or_else(Judgement::Refused)
    }

    /// The canary that a refused request was about, and why we refused it, where its token is genuine and the refusal hides something
    /// of that canary. What can't be tried without the body counts as unproven.
    pub fn refused_canary(
        &self,
        result: ArrivalResult,
        token_of_path: Option<Verified>,
        message: &Message<'_>,
        now: DateTime<Utc>,
    ) -> Option<(CanaryId, ArrivalRefusal)> {
        let reason = match result {
            ArrivalResult::WrongRoute => ArrivalRefusal::WrongRoute,
            ArrivalResult::TooLarge => ArrivalRefusal::TooLarge,
            ArrivalResult::BadSender => ArrivalRefusal::Unproven,
            _ => return None,
        };
        let token = token_of_path.map_or_else(|| self.token_of_message(message, now), Ok).ok()?;
        let proven = self.is_proven(message, now);
        (token.purpose == Purpose::Canary)
            .then_some((token.canary_id, if proven { reason } else { ArrivalRefusal::Unproven }))
    }

    /// Whether the sender has proven itself. What it signed holds the time of its own clock. Ours is the store's, and were that one wrong
    /// every message would be refused; so the system's is asked too before one is.
    fn is_proven(&self, message: &Message<'_>, now: DateTime<Utc>) -> bool {
        self.sender.accepts(message, now) || self.sender.accepts(message, Utc::now())
    }

    fn token_of_message(&self, message: &Message<'_>, now: DateTime<Utc>) -> Result<Verified, ArrivalResult> {
        let token = self.token_spots.iter().find_map(|spot| message.text_at(spot).filter(|t| has_form(t)));
        Ok(self.signer.verify(&token.ok_or(ArrivalResult::MalformedToken)?, now)?)
    }

    /// A message to ourselves needs no proof of the sender: the service's secret isn't ours to sign with.
    fn self_receipt(&self, token: Verified) -> Result<Judgement, ArrivalResult> {
        let here = token.bound == Bound::to_receiver(&self.receiver);
        let way = Way::from_uuid(token.canary_id.0);
        here.then_some(Judgement::SelfReceipt(way)).ok_or(ArrivalResult::WrongRoute)
    }

    fn canary(
        &self,
        token: Verified,
        message: &Message<'_>,
        now: DateTime<Utc>,
        arrival_id: String,
    ) -> Result<Judgement, ArrivalResult> {
        let rules = self.routes.get(&token.bound).ok_or(ArrivalResult::WrongRoute)?;
        if !self.is_proven(message, now) {
            return Err(ArrivalResult::BadSender);
        }
        let receipt = Receipt {
            at: now,
            content: rules.expectations.check(message, token.canary_id),
            digest: digest(message.body),
            message: message.headers.get(&self.message_id).map(|id| digest(id.as_bytes())),
            correlated: rules.correlated(message, token.canary_id),
            arrival_id,
        };
        Ok(Judgement::Canary(Arrival {
            canary_id: token.canary_id,
            route: rules.route.clone(),
            receiver: self.receiver.clone(),
            receipt,
        }))
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
