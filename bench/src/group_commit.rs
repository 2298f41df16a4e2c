//! A thread that writes queued transactions in groups, for contestants without one. It works like the engine's, without
//! deciding anything.

use tokio::sync::{mpsc, oneshot};

/// Transactions per group, which equal a full group of the engine in size.
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
    /// Starts the thread; `commit` must make all that it receives durable.
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
