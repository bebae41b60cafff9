//! The webhook receiver and the self-receipt, over real sockets.

#[path = "receipt/answers.rs"]
mod answers;
#[path = "receipt/hostile.rs"]
mod hostile;
#[path = "receipt/self_receipt.rs"]
mod self_receipt;
#[path = "receipt/senders.rs"]
mod senders;
#[path = "receipt/support.rs"]
mod support;
