//! One writing thread that drains a queue, for the contestants that have none of their own: the
//! same arrangement as in the engine, with nothing to decide.

use tokio::sync::{mpsc, oneshot};

/// A group is closed at this many transactions, which weigh what a full group of the engine does.
const GROUP_TRANSACTIONS_MAX: usize = 600;

pub(crate) struct GroupCommit<T> {
    queue: mpsc::UnboundedSender<Waiting<T>>,
}

impl<T> Clone for GroupCommit<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

struct Waiting<T> {
    transactions: Vec<T>,
    reply: oneshot::Sender<()>,
}

impl<T: Send + 'static> GroupCommit<T> {
    /// Starts the thread; `commit` must make all that it is given durable.
    pub(crate) fn start(name: &str, mut commit: impl FnMut(Vec<T>) + Send + 'static) -> Self {
        let (queue, mut receiver) = mpsc::unbounded_channel::<Waiting<T>>();
        let run = move || {
            while let Some(first) = receiver.blocking_recv() {
                let mut group = first.transactions;
                let mut replies = vec![first.reply];
                while group.len() < GROUP_TRANSACTIONS_MAX
                    && let Ok(next) = receiver.try_recv()
                {
                    group.extend(next.transactions);
                    replies.push(next.reply);
                }
                commit(group);
                for reply in replies {
                    let _ = reply.send(());
                }
            }
        };
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)
            .expect("a thread can be started");
        Self { queue }
    }

    pub(crate) async fn write(&self, transactions: Vec<T>) {
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting {
            transactions,
            reply,
        };
        assert!(
            self.queue.send(waiting).is_ok(),
            "the writing thread has ended"
        );
        answer.await.expect("the writing thread answers");
    }
}
