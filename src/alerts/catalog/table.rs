//! The table of all alerts.

use super::{Audience, Entry, Severity};

const LIST: &str = "delivery-canary canary list --config FILE --route ROUTE --limit 10";
const LIST_ALL: &str = "delivery-canary canary list --config FILE --limit 5";
const CONTRADICTIONS: &str =
    "delivery-canary canary list --config FILE --route ROUTE --contradiction --limit 10";
const SHOW: &str = "delivery-canary canary show ID --config FILE";
const RECONCILE: &str =
    "delivery-canary ledger reconcile --config FILE --route ROUTE --ids --from FROM --to TO";
const RECONCILE_LEDGER: &str =
    "delivery-canary ledger reconcile --config FILE --ledger LEDGER --ids --from FROM --to TO";
const RESUME: &str = "delivery-canary resume ROUTE --owner NAME --config FILE";
const GENERATE: &str = "delivery-canary alerts generate --config FILE --out DIR";
/// Sends a canary.
pub const SEND: &str = "delivery-canary canary send ROUTE --config FILE";
/// Looks whether the configuration works.
pub const ONLINE: &str = "delivery-canary check --online --config FILE";
/// Looks at the configuration.
pub const OFFLINE: &str = "delivery-canary check --config FILE";
/// Looks when canaries are sent.
pub const NEXT: &str = "delivery-canary schedule next --config FILE";
/// Looks whether ledgers can be read.
pub const CHECK_LEDGER: &str = "delivery-canary ledger check --config FILE";
/// How each command begins that counts a ledger exactly.
pub const RECONCILE_BEGINS: &str = "delivery-canary ledger reconcile ";

macro_rules! entries {
    ($($(#[doc = $doc:literal])+ $ident:ident = $entry:expr;)+) => {
        $($(#[doc = $doc])+ pub static $ident: Entry = $entry;)+
        /// All alerts, in the order of this table.
        pub static ALL: &[&Entry] = &[$(&$ident),+];
    };
}

entries! {
    /// Canaries don't arrive.
    CANARY_FAILING = Entry {
        name: "CanaryDeliveryFailing",
        question: "Does a fresh notification arrive now?",
        says: "Canaries of the route have failed so often, and for so long, that chance is no explanation. It names the stage at which the newest failure stopped.",
        says_not: "It doesn't say how many customers are hit, nor that nothing at all arrives: half an outage is one too. The first failure that it names may have been a stray one: the outage began then or later.",
        severity: Severity::Page,
        audience: Audience::Service,
        eligible: "every route; by a majority of the locations that can look, or by one where the route says `page_on: any`",
        first: [LIST, SHOW, SEND],
        stop: "Canaries of the schedule arrive, and the evidence comes down with each. One that you send shows how it is now, and is no evidence. With confirmations it resolves some ten minutes after the recovery; without them after several intervals of the route.",
    };
    /// Canaries come late.
    CANARY_SLOW = Entry {
        name: "CanaryDeliverySlow",
        question: "Do they arrive in time?",
        says: "Canaries arrive, but for long and too often after the route's deadline.",
        says_not: "It doesn't say that any is lost. What doesn't arrive at all is CanaryDeliveryFailing.",
        severity: Severity::Page,
        audience: Audience::Service,
        eligible: "every route; a ticket unless the configuration says `slow: page`",
        first: [LIST, SHOW, SEND],
        stop: "New canaries are `on_time`; or the deadline is wrong, and you change it.",
    };
    /// Many customers lose messages.
    BURN_FAST = Entry {
        name: "DeliveryBudgetBurnFast",
        question: "Are many customers losing messages?",
        says: "Of the notifications that fell due in the last hour so many are bad that the error budget is spent many times too fast, and still is now.",
        says_not: "It says nothing of what was never written into the ledger, nor of a route with few notifications.",
        severity: Severity::Page,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, in an hour with enough accepted for ten to be bad at the bound",
        first: [RECONCILE, LIST, SEND],
        stop: "The share over five minutes is below its bound. What was lost stays lost: say so to its owners.",
    };
    /// Many customers lose messages, more slowly.
    BURN_SLOW = Entry {
        name: "DeliveryBudgetBurnSlow",
        question: "Have many customers been losing messages for hours?",
        says: "As DeliveryBudgetBurnFast, over six hours and half an hour, at a lower bound.",
        says_not: "It says nothing of what was never written into the ledger, nor of a route with few notifications.",
        severity: Severity::Page,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, in six hours with enough accepted for ten to be bad at the bound",
        first: [RECONCILE, LIST, SEND],
        stop: "The share over half an hour is below its bound.",
    };
    /// The objective will be missed.
    BURN_TICKET = Entry {
        name: "DeliveryBudgetBurnTicket",
        question: "Will the objective be missed if it goes on like this?",
        says: "Over a day, or over three, the error budget is spent too fast.",
        says_not: "It doesn't say that anything is broken now.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, over windows with enough accepted for five to be bad at the bound",
        first: [RECONCILE, LIST, SHOW],
        stop: "You know what the bad ones have in common, and somebody has it as a task.",
    };
    /// Accepted notifications are stuck.
    OVER_DEADLINE = Entry {
        name: "PendingOverDeadline",
        question: "Are accepted notifications stuck?",
        says: "More notifications are pending past the route's deadline than the budget of a day allows; or the oldest is four deadlines old, nothing is known to have been delivered in half an hour, and canaries fail.",
        says_not: "It doesn't say why. A backlog that a long outage left behind looks the same while it is worked off. Until a followed ledger is caught up with for the first time the day's budget comes from `accepted_per_day`; without that, number alone tells nothing.",
        severity: Severity::Page,
        audience: Audience::Service,
        eligible: "routes with a ledger whose pending are read",
        first: [LIST, RECONCILE, SEND],
        stop: "The number falls without your help, or those who work off the queue have taken over.",
    };
    /// One is stuck for long.
    FORGOTTEN = Entry {
        name: "PendingForgotten",
        question: "Is even one stuck for long?",
        says: "At least one accepted notification has been pending far beyond the deadline. On a busy route no ratio would ever show it.",
        says_not: "It doesn't say that others are stuck too.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes with a ledger whose pending are read",
        first: [RECONCILE, ONLINE, LIST],
        stop: "Each of them is delivered, rejected or written off by somebody who may.",
    };
    /// A busy route is quiet.
    STOPPED = Entry {
        name: "AcceptanceStopped",
        question: "Has a busy route gone quiet?",
        says: "Nothing was accepted in the last hour, and a week ago in the same hour much was. It is a page only while canaries fail too.",
        says_not: "It doesn't say that the service is at fault: its callers may be quiet, and holidays are.",
        severity: Severity::Page,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, with at least twenty accepted in that hour a week ago",
        first: [SEND, LIST, ONLINE],
        stop: "Something is accepted again, or its callers say why not.",
    };
    /// Retries hide a failing provider.
    RETRY_SURGE = Entry {
        name: "RetrySurge",
        question: "Are providers failing while retries still hide it?",
        says: "The share of attempts that have to be tried again, or whose fate is unknown, is far above that of the route's last week.",
        says_not: "It doesn't say that a customer has noticed anything.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed with its attempts, at 50 such attempts in half an hour",
        first: [LIST, RECONCILE, SEND],
        stop: "The provider says what it is, or the share is as it was.",
    };
    /// The address list rots.
    REJECTIONS = Entry {
        name: "RecipientRejections",
        question: "Is the address list rotting?",
        says: "More notifications than usual were rejected because of their recipient.",
        says_not: "It isn't the service that fails, and no budget burns.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, at 50 such rejections a day",
        first: [RECONCILE, LIST, OFFLINE],
        stop: "You know where the addresses came from, and their owner has it as a task.",
    };
    /// A quiet route fails again and again.
    LOW_VOLUME = Entry {
        name: "LowVolumeFailures",
        question: "Are there repeated failures on a quiet route?",
        says: "At least two notifications of the day were bad, on a route with too few for any ratio to judge.",
        says_not: "It says nothing of a share.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, while no ratio is eligible there",
        first: [RECONCILE, LIST, SEND],
        stop: "You know what became of each of them.",
    };
    /// Outcomes nobody knows.
    UNKNOWN = Entry {
        name: "UnknownOutcomes",
        question: "Whose fate is not known?",
        says: "The newest attempt of at least one notification is `unknown`, and has been for longer than reconciling may take.",
        says_not: "It doesn't say that it failed. Sending it again may deliver it twice.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes with a ledger whose pending are read",
        first: [RECONCILE, ONLINE, LIST],
        stop: "The provider's answer is in the ledger for each of them.",
    };
    /// Suppression hides failures.
    SUPPRESSION = Entry {
        name: "SuppressionSurge",
        question: "Is suppression hiding failures?",
        says: "The share of notifications that policy held back is far above that of the route's last week.",
        says_not: "Suppression is policy, and outside of the objective: it may be meant.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed, at 50 suppressed in six hours",
        first: [RECONCILE, LIST, SEND],
        stop: "Whoever changed the policy says that it is meant so.",
    };
    /// The three views contradict each other.
    DISAGREEMENT = Entry {
        name: "EvidenceDisagreement",
        question: "Do API, ledger and sink contradict each other?",
        says: "On at least two canaries of the last day, what the API answered, what the ledger shows and what the sink received can't all be true.",
        says_not: "It doesn't say which of them is wrong.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "every route",
        first: [CONTRADICTIONS, SHOW, RECONCILE],
        stop: "You know which view is wrong, and why.",
    };
    /// The books don't balance.
    RESIDUE = Entry {
        name: "LedgerResidue",
        question: "Do the books balance?",
        says: "For the last closed hour the followed figures and the ledger's own count differ. While they do by more than one in a hundred of what the ledger counts, ratios of this route do not judge.",
        says_not: "It doesn't say which of the two is wrong.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger has a `partition` query",
        first: [RECONCILE, ONLINE, OFFLINE],
        stop: "`ledger reconcile` names the notifications, and you know why they differ.",
    };
    /// Something was accepted that the ledger never wrote.
    NEVER_WRITTEN = Entry {
        name: "AcceptedNeverWritten",
        question: "Does the ledger know everything that was accepted?",
        says: "For the last closed hour a count that is independent of the ledger has more accepted notifications than the ledger: at least so many were promised, and aren't written there.",
        says_not: "It doesn't say which they are, nor whether anything attempts them: the ledger can't, so the service's own logs must.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger has an `accepted_elsewhere`",
        first: [RECONCILE, ONLINE, OFFLINE],
        stop: "You know what fell between the two, and its senders are told.",
    };
    /// The ledger's history was changed.
    HISTORY = Entry {
        name: "LedgerHistoryRewritten",
        question: "Was the ledger's history changed?",
        says: "What the ledger said before, it does not say any more: an outcome was rewritten, an attempt is gone, or one came after the last. While that is so of more than one comparison in a hundred of the sample, and of more than one at all, ratios of its routes do not judge.",
        says_not: "It doesn't say that anything was not delivered, nor that a sample has found all of it.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "every ledger that is audited",
        first: [RECONCILE_LEDGER, ONLINE, OFFLINE],
        stop: "You know who changes rows there, and it is no longer done.",
    };
    /// A canary route is suppressed.
    SUPPRESSED = Entry {
        name: "CanaryRouteSuppressed",
        question: "Is this route measured at all?",
        says: "Policy held back canaries of the route: nobody knows whether it delivers.",
        says_not: "It doesn't say that customers' notifications are held back.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose canaries are not expected to be suppressed",
        first: [LIST, SHOW, SEND],
        stop: "The canary's recipient is off the suppression list, and the next canary arrives.",
    };
    /// A canary route never runs.
    MISSING = Entry {
        name: "CanaryRouteMissing",
        question: "Does this route send canaries at all?",
        says: "The route is configured, and some process of the monitor has seen no canary submitted since a slot two intervals ago; or none was ever submitted in three days.",
        says_not: "It says nothing of customers' notifications. Other locations may send.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "every route that is not paused",
        first: [NEXT, LIST, OFFLINE],
        stop: "A canary was submitted by schedule.",
    };
    /// Canaries count as customers.
    LEAK = Entry {
        name: "CanaryLeak",
        question: "Do canaries count as customers?",
        says: "The ledger's queries gave canaries among the customers' notifications. They are left out of the numbers.",
        says_not: "It doesn't say that customers got canaries.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "routes whose ledger is followed",
        first: [ONLINE, OFFLINE, LIST],
        stop: "The queries leave canaries out, and the monitor was started anew.",
    };
    /// Somebody's address was stopped.
    GUARD = Entry {
        name: "GuardRefused",
        question: "Was a request stopped that could have reached a customer?",
        says: "The guard found an address in a canary's request that is not on the route's allow-list, or could not make the request.",
        says_not: "Nothing left: the request was stopped.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "every route",
        first: [OFFLINE, LIST, SHOW],
        stop: "`check` finds nothing, and canaries go out again.",
    };
    /// A pause was forgotten.
    PAUSED = Entry {
        name: "CanaryPausedTooLong",
        question: "Is somebody's pause forgotten?",
        says: "Sending on the route has been paused for a whole day.",
        says_not: "It doesn't say that the route fails: nobody knows.",
        severity: Severity::Ticket,
        audience: Audience::Service,
        eligible: "every route",
        first: [RESUME, LIST, NEXT],
        stop: "It is sent again, or whoever paused it says why not.",
    };
    /// Our own schedule is not kept.
    SLOTS = Entry {
        name: "SlotsMissed",
        question: "Do we keep our own schedule?",
        says: "More than one in a hundred slots of the last six hours, and at least three, were not sent in time.",
        says_not: "It says nothing of the service.",
        severity: Severity::Ticket,
        audience: Audience::Owners,
        eligible: "every route",
        first: [NEXT, LIST, OFFLINE],
        stop: "No more are missed.",
    };
    /// The monitor can't see.
    BLIND = Entry {
        name: "MonitorBlind",
        question: "Can we see?",
        says: "The monitor runs no canaries, can't read a ledger or hear a receiver, or can't say what became of its canaries. Nothing is known of what it doesn't see: neither good nor bad.",
        says_not: "It doesn't say that anything fails to be delivered. No other alert speaks on what is not seen.",
        severity: Severity::Page,
        audience: Audience::Owners,
        eligible: "every location, ledger and receiver; canaries of which nothing is known for three intervals and two deadlines",
        first: [ONLINE, OFFLINE, LIST_ALL],
        stop: "The label `blind` says what is not seen; it is seen again.",
    };
    /// The store can't be used.
    STORE = Entry {
        name: "MonitorStoreDown",
        question: "Can we keep our promise?",
        says: "The monitor's own store can't be used: no canary is sent, since none leaves before it is written down.",
        says_not: "It says nothing of the service.",
        severity: Severity::Ticket,
        audience: Audience::Owners,
        eligible: "every process",
        first: [ONLINE, OFFLINE, LIST_ALL],
        stop: "`check --online` says that the store is well.",
    };
    /// A new configuration was refused.
    RELOAD = Entry {
        name: "ReloadFailed",
        question: "Is the newest configuration in force?",
        says: "The newest configuration was refused, and the one before is still in force.",
        says_not: "It doesn't say that anything stands still.",
        severity: Severity::Ticket,
        audience: Audience::Owners,
        eligible: "every process",
        first: [OFFLINE, ONLINE, NEXT],
        stop: "`check` finds nothing, and the configuration was taken.",
    };
    /// These rules are of another configuration.
    RULES_STALE = Entry {
        name: "RulesStale",
        question: "Are these rules of this configuration?",
        says: "A monitor runs with another configuration than the one that these rules were made from: their bounds may be wrong, and new routes are not judged.",
        says_not: "It doesn't say that the configuration is wrong.",
        severity: Severity::Ticket,
        audience: Audience::Owners,
        eligible: "every process",
        first: [GENERATE, OFFLINE, ONLINE],
        stop: "Rules made from the running configuration are loaded.",
    };
    /// Clocks differ.
    SKEW = Entry {
        name: "ClockSkew",
        question: "Can we trust ages?",
        says: "The store's clock differs from a monitor's machine's, or a ledger's from the time by which the monitors go, by more than a minute. Ages in that ledger are wrong by as much; between monitors nothing is, since all go by the store's clock.",
        says_not: "It doesn't say whose clock is wrong. If it is the store's, slots and pauses are as early or late as it is.",
        severity: Severity::Ticket,
        audience: Audience::Owners,
        eligible: "every clock that can be compared",
        first: [ONLINE, OFFLINE, "date --utc"],
        stop: "The difference is below a second.",
    };
    /// Always fires.
    WATCHDOG = Entry {
        name: "Watchdog",
        question: "Is the alert path alive?",
        says: "Rules are evaluated and alerts are sent. It always fires; a dead man's switch pages when it stays out.",
        says_not: "It says nothing else.",
        severity: Severity::None,
        audience: Audience::DeadMan,
        eligible: "always",
        first: ["amtool alert query alertname=Watchdog", "promtool check rules rules.yaml", OFFLINE],
        stop: "It is heard again.",
    };
}
