//! Faults of the simulated push service, as frequent as disconnects of devices.

use std::collections::HashSet;

use crate::expo_stand_in::{Fault, FaultKind};
use serde_json::Value;

use crate::random::SeededRandom;

/// Below this, only the response is lost; above, the request too.
const LOST: f64 = 0.8;

/// Chooses a fault for each request. The first request always loses its response. A message loses at most one response,
/// because the server gives a message up after three.
pub(super) fn fault_policy(
    seed: u64,
    share: f64,
) -> impl FnMut(&[Value]) -> Option<Fault> + Send + 'static {
    let mut random = SeededRandom::new([seed, 31]);
    let mut unlucky: HashSet<String> = HashSet::new();
    move |messages| {
        let is_first = unlucky.is_empty() && share > 0.0;
        if !is_first && random.unit() >= share {
            return None;
        }
        let kind = if is_first { LOST } else { random.unit() };
        if kind < 0.3 {
            return Some(not_accepted(FaultKind::Status(429, Some(1))));
        }
        if kind < 0.6 {
            return Some(not_accepted(FaultKind::Status(503, None)));
        }
        let names: Vec<String> = messages
            .iter()
            .map(|message| message["data"].to_string())
            .collect();
        if names.iter().any(|name| unlucky.contains(name)) {
            return None;
        }
        unlucky.extend(names);
        Some(Fault {
            accepts: kind <= LOST,
            kind: FaultKind::Disconnect,
        })
    }
}

fn not_accepted(kind: FaultKind) -> Fault {
    Fault {
        accepts: false,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_loses_at_most_one_response() {
        let mut fault_policy = fault_policy(1, 0.9);
        let message = |number: u32| json!({"data": {"number": number}});
        let mut lost = 0;
        for _ in 0..200 {
            let fault = fault_policy(&[message(1), message(2)]);
            lost += usize::from(fault.is_some_and(|fault| fault.kind == FaultKind::Disconnect));
        }
        assert_eq!(lost, 1);
        let mut fine = self::fault_policy(1, 0.0);
        assert!((0..200).all(|_| fine(&[message(1)]).is_none()));
    }
}
