//! Group commit. Many small writes that come at once share one transaction, and so one wait for the disk.
//!
//! Whoever finds nobody writing writes for all that are waiting; the others wait for their answers. Nothing is answered before it is
//! durable.

use super::{
    Append, Appended, Decision, Planned,
    append::append,
    database::{Access, CALL_LIMIT, Database},
    decide::{decide, reserve_changes},
    fault::Fault,
    plan::{Wish, plan},
    stream::Newest,
    sums::Deltas,
};
use crate::clock;
use sqlx::AnyConnection;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{Mutex as Turn, oneshot};

/// Most items of one transaction; a single call with more has one of its own. More would save little, and whoever comes next waits for
/// the whole of it.
const AT_ONCE: usize = 512;

/// How often a transaction that met another one is tried again.
const TRIES: usize = 4;

/// Where an answer goes.
type Answer<T> = oneshot::Sender<Result<Vec<T>, Fault>>;

/// A write that waits for its turn.
#[derive(Debug)]
pub(super) enum Job {
    Plan(Vec<Wish>, Answer<Planned>),
    Append(Vec<Append>, Answer<Appended>),
    Decide(Vec<Decision>, Answer<bool>),
}

impl Job {
    fn len(&self) -> usize {
        match self {
            Self::Plan(wishes, _) => wishes.len(),
            Self::Append(appends, _) => appends.len(),
            Self::Decide(decisions, _) => decisions.len(),
        }
    }

    /// Whether nobody waits for the answer any more. What was given up is not begun.
    fn is_given_up(&self) -> bool {
        match self {
            Self::Plan(_, answer) => answer.is_closed(),
            Self::Append(_, answer) => answer.is_closed(),
            Self::Decide(_, answer) => answer.is_closed(),
        }
    }
}

/// The queue of writes.
#[derive(Debug)]
pub(super) struct Writer {
    database: Arc<Database>,
    waiting: Mutex<VecDeque<Job>>,
    turn: Arc<Turn<()>>,
}

impl Writer {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, waiting: Mutex::default(), turn: Arc::default() }
    }

    /// Writes, together with what else is waiting.
    pub(super) async fn write<T>(
        self: &Arc<Self>,
        job: impl FnOnce(Answer<T>) -> Job,
    ) -> Result<Vec<T>, Fault> {
        let (answer, mut answered) = oneshot::channel();
        self.enqueue(job(answer));
        Database::within(CALL_LIMIT, async {
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answered => {
                        return answer.unwrap_or_else(|_| Err(Fault::TooLate(CALL_LIMIT)));
                    }
                    turn = self.turn.clone().lock_owned() => {
                        let writer = self.clone();
                        // A task of its own: who gives up waiting must not take the others' writes with him.
                        let written = tokio::spawn(async move {
                            let _turn = turn;
                            writer.write_waiting().await;
                        });
                        if written.await.is_err() {
                            return Err(Fault::TooLate(CALL_LIMIT));
                        }
                    }
                }
            }
        })
        .await
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Job>> {
        // A panic elsewhere leaves a queue that is still whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decisions stand first in the queue: they end what was begun. Behind a long queue of plans and appends the settling would be
    /// slower the more there is to settle. The follower waits for each of its decisions, so that they can't keep the others waiting.
    fn enqueue(&self, job: Job) {
        let mut queue = self.queue();
        match job {
            Job::Decide(..) => queue.push_front(job),
            Job::Plan(..) | Job::Append(..) => queue.push_back(job),
        }
    }

    fn next_batch(&self) -> Vec<Job> {
        let mut queue = self.queue();
        let (mut batch, mut items) = (Vec::new(), 0);
        while let Some(job) = queue.pop_front() {
            if job.is_given_up() {
                continue;
            }
            if !batch.is_empty() && items + job.len() > AT_ONCE {
                queue.push_front(job);
                break;
            }
            items += job.len();
            batch.push(job);
        }
        batch
    }

    async fn write_waiting(&self) {
        let mut batch = self.next_batch();
        if batch.is_empty() {
            return;
        }
        match self.write_batch(&batch).await {
            Ok(answers) => answers.give(batch),
            // One of them may be at fault: then the others need not suffer for it.
            Err(fault) if batch.len() > 1 && fault.is_of_this_work() => {
                for job in batch.drain(..) {
                    let alone = [job];
                    let result = self.write_batch(&alone).await;
                    let [job] = alone;
                    settle(job, result);
                }
            }
            Err(fault) => {
                let text = fault.to_string();
                for job in batch.drain(..) {
                    settle(job, Err(fault_again(&fault, &text)));
                }
            }
        }
    }

    async fn write_batch(&self, batch: &[Job]) -> Result<Answers, Fault> {
        let all = Batch::of(batch);
        let mut tries = 1;
        loop {
            let result = Database::within(CALL_LIMIT, async {
                let mut work = self.database.begin(Access::Write).await?;
                let result = all.write(&mut work, &self.database).await;
                self.database.finish(work, result).await
            })
            .await;
            match result {
                Err(fault) if fault.is_collision() && tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }
}

/// The same fault for each of those that it hit.
fn fault_again(fault: &Fault, text: &str) -> Fault {
    match fault {
        Fault::TooLate(limit) => Fault::TooLate(*limit),
        Fault::ClockMoved(moved) => Fault::ClockMoved(*moved),
        Fault::Gone(reason) => Fault::Gone(reason.clone()),
        Fault::Schema(reason) => Fault::Schema(reason.clone()),
        Fault::Corrupt { what, reason } => Fault::Corrupt { what, reason: reason.clone() },
        Fault::Database(sqlx::Error::PoolTimedOut) => Fault::Database(sqlx::Error::PoolTimedOut),
        Fault::Database(_) => Fault::Database(sqlx::Error::Protocol(text.to_owned())),
    }
}

/// All items of a batch, each sort together.
struct Batch {
    wishes: Vec<Wish>,
    appends: Vec<Append>,
    decisions: Vec<Decision>,
}

impl Batch {
    fn of(jobs: &[Job]) -> Self {
        let mut all = Self { wishes: Vec::new(), appends: Vec::new(), decisions: Vec::new() };
        for job in jobs {
            match job {
                Job::Plan(wishes, _) => all.wishes.extend_from_slice(wishes),
                Job::Append(appends, _) => all.appends.extend_from_slice(appends),
                Job::Decide(decisions, _) => all.decisions.extend_from_slice(decisions),
            }
        }
        all
    }

    /// Writes all, in the order in which every process locks: numbers, caps, canaries, and last the rows that many canaries share, so
    /// that those are locked for a short time.
    async fn write(&self, conn: &mut AnyConnection, database: &Database) -> Result<Answers, Fault> {
        let (now, dialect) = (clock::now(), database.dialect);
        let (mut newest, mut deltas) = (Newest::default(), Deltas::default());
        let change = reserve_changes(conn, &self.decisions).await?;
        let planned = plan(conn, &self.wishes, &mut newest).await?;
        let appended = append(conn, dialect, &self.appends, now, &mut newest).await?;
        let decided = decide(conn, dialect, &self.decisions, (now, change), &mut newest, &mut deltas).await?;
        newest.write(conn).await?;
        deltas.write(conn).await?;
        Ok(Answers {
            planned: planned.into_iter(),
            appended: appended.into_iter(),
            decided: decided.into_iter(),
        })
    }
}

/// The answers of a batch, in the order of its jobs.
#[derive(Debug)]
struct Answers {
    planned: std::vec::IntoIter<Planned>,
    appended: std::vec::IntoIter<Appended>,
    decided: std::vec::IntoIter<bool>,
}

impl Answers {
    fn give(mut self, jobs: Vec<Job>) {
        for job in jobs {
            self.give_one(job);
        }
    }

    fn give_one(&mut self, job: Job) {
        // An answer that nobody waits for any more is dropped.
        match job {
            Job::Plan(wishes, answer) => {
                drop(answer.send(Ok(self.planned.by_ref().take(wishes.len()).collect())));
            }
            Job::Append(appends, answer) => {
                drop(answer.send(Ok(self.appended.by_ref().take(appends.len()).collect())));
            }
            Job::Decide(decisions, answer) => {
                drop(answer.send(Ok(self.decided.by_ref().take(decisions.len()).collect())));
            }
        }
    }
}

fn settle(job: Job, result: Result<Answers, Fault>) {
    match result {
        Ok(mut answers) => answers.give_one(job),
        Err(fault) => match job {
            Job::Plan(_, answer) => drop(answer.send(Err(fault))),
            Job::Append(_, answer) => drop(answer.send(Err(fault))),
            Job::Decide(_, answer) => drop(answer.send(Err(fault))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::database::Dialect;

    #[tokio::test]
    async fn decisions_are_written_before_what_waits() {
        sqlx::any::install_default_drivers();
        let pool = sqlx::AnyPool::connect_lazy("sqlite::memory:").expect("nothing connects yet");
        let writer = Writer::new(Arc::new(Database::new(Dialect::Sqlite, pool.clone(), pool)));
        let (planned, _planned) = oneshot::channel();
        let (appended, _appended) = oneshot::channel();
        let (decided, _decided) = oneshot::channel();
        writer.enqueue(Job::Plan(Vec::new(), planned));
        writer.enqueue(Job::Append(Vec::new(), appended));
        writer.enqueue(Job::Decide(Vec::new(), decided));
        let batch = writer.next_batch();
        assert!(matches!(batch.as_slice(), [Job::Decide(..), Job::Plan(..), Job::Append(..)]), "{batch:?}");
    }
}
