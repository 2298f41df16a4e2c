//! Background tasks of the server. One that panics does not run again, so health checks must show it.

use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;

/// Spawns background tasks and records the first one that panics. Clones share this.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<OnceLock<&'static str>>);

impl Tasks {
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        tokio::spawn(self.watched(name, task))
    }

    /// Wraps a task, whose name is recorded if it panics.
    pub(crate) fn watched<T>(
        &self,
        name: &'static str,
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let guard = PanicGuard {
            tasks: self.clone(),
            name,
        };
        async move {
            let _guard = guard;
            task.await
        }
    }

    /// The name of the first task that panicked.
    pub(crate) fn panicked(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}

struct PanicGuard {
    tasks: Tasks,
    name: &'static str,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.tasks.0.set(self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panicked_task_is_named() {
        let tasks = Tasks::default();
        tasks.spawn("one", async {}).await.expect("no panic");
        assert_eq!(tasks.panicked(), None);
        let two = tasks.spawn("two", async { panic!("a test") }).await;
        assert!(two.is_err());
        assert_eq!(tasks.panicked(), Some("two"));
    }
}
