//! Raises the limit of file descriptors, and divides them between the store and client connections.

/// Bounds of the store's quarter of all descriptors.
const STORE_FILES_MIN: usize = 64;
const STORE_FILES_MAX: usize = 900;
/// For the store's journals, backups, background jobs and briefly open table files.
const STORE_RESERVE: usize = 64;
/// For ports, connections that are being rejected, outgoing requests and the log.
const OTHER_RESERVE: usize = 4 * homeport_server::REFUSALS_MAX + 64;
/// Minimum number of connections.
const CONNECTIONS_MIN: usize = 16;

/// The limit on open files of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptorLimit(usize);

impl DescriptorLimit {
    /// Raises the soft limit to the hard limit, which is usually much higher.
    #[cfg(unix)]
    pub(crate) fn raise() -> Self {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        // Some systems refuse an unlimited soft limit. The limit then stays unchanged.
        let current = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.maximum,
            Err(_) => limit.current,
        };
        Self(current.map_or(usize::MAX, |count| {
            usize::try_from(count).unwrap_or(usize::MAX)
        }))
    }

    #[cfg(not(unix))]
    pub(crate) fn raise() -> Self {
        Self(usize::MAX)
    }

    pub(crate) fn count(self) -> usize {
        self.0
    }

    /// Number of table files that the store may keep open.
    pub(crate) fn store_files(self) -> usize {
        (self.0 / 4).clamp(STORE_FILES_MIN, STORE_FILES_MAX)
    }

    /// Number of client connections for which there are descriptors.
    pub(crate) fn connections(self) -> usize {
        let reserved = self.store_files() + STORE_RESERVE + OTHER_RESERVE;
        self.0.saturating_sub(reserved).max(CONNECTIONS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_store() {
        for (limit, store_files, connections) in [
            (64, 64, CONNECTIONS_MIN),
            (1024, 256, 512),
            (4096, 900, 2940),
            (usize::MAX, 900, usize::MAX - 1156),
        ] {
            let limit = DescriptorLimit(limit);
            let shares = (limit.store_files(), limit.connections());
            assert_eq!(shares, (store_files, connections), "{limit:?}");
        }
    }
}
