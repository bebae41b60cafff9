//! The webhook receiver and the self-receipt, over real sockets.

mod answers;
mod hostile;
mod self_receipt;
mod senders;
mod support;
