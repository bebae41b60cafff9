//! Reading a body within bounds of size and time.

use crate::receipt::stats::ArrivalResult;
use hyper::body::{Body, Bytes, Incoming};
use std::{future::poll_fn, pin::Pin};
use tokio::time::{Instant, timeout_at};

/// How much above the limit is still read, and thrown away, before the answer. A sender that is still writing when
/// we close would lose the answer with the connection.
const DISCARDED_BYTES: usize = 1024 * 1024;

/// Reads a body of at most `limit` bytes until `end`. If `keep` is false, it is thrown away as it comes.
pub(super) async fn read(
    mut body: Incoming,
    limit: usize,
    end: Instant,
    keep: bool,
) -> Result<Vec<u8>, ArrivalResult> {
    let most = limit.saturating_add(DISCARDED_BYTES);
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(ArrivalResult::TooLarge);
    }
    let mut kept = Vec::new();
    let mut length = 0;
    while length <= most {
        let slow = if length > limit { ArrivalResult::TooLarge } else { ArrivalResult::TooSlow };
        let Some(bytes) = timeout_at(end, next(&mut body)).await.map_err(|_| slow)? else { break };
        let bytes = bytes.map_err(|_| ArrivalResult::Broken)?;
        length += bytes.len();
        if keep && length <= limit {
            kept.extend_from_slice(&bytes);
        } else {
            kept = Vec::new();
        }
    }
    if length > limit { Err(ArrivalResult::TooLarge) } else { Ok(kept) }
}

/// The next bytes of a body; trailers are passed over.
async fn next(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
            Ok(frame) => {
                if let Ok(bytes) = frame.into_data() {
                    return Some(Ok(bytes));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}
