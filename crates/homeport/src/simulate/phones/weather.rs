//! What goes wrong on the way to Expo, as often as connections of devices break.

use std::collections::HashSet;

use homeport_server::expo_stand_in::{Fault, Then};
use serde_json::Value;

use super::super::dice::Dice;

/// Up to here it is the answer alone that gets lost, and above the request as well.
const LOST: f64 = 0.8;

/// Decides about each request. The first answer gets lost, so that no run goes without that; of a
/// message at most one does: after three, the server gives it up, and would be right to.
pub(super) fn weather(
    seed: u64,
    share: f64,
) -> impl FnMut(&[Value]) -> Option<Fault> + Send + 'static {
    let mut dice = Dice::new([seed, 31]);
    let mut unlucky: HashSet<String> = HashSet::new();
    move |messages| {
        let is_first = unlucky.is_empty() && share > 0.0;
        if !is_first && dice.unit() >= share {
            return None;
        }
        let kind = if is_first { LOST } else { dice.unit() };
        if kind < 0.3 {
            return Some(not_taken(Then::Status(429, Some(1))));
        }
        if kind < 0.6 {
            return Some(not_taken(Then::Status(503, None)));
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
            takes: kind <= LOST,
            then: Then::BreakOff,
        })
    }
}

fn not_taken(then: Then) -> Fault {
    Fault { takes: false, then }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_answer_about_a_message_is_lost_twice() {
        let mut weather = weather(1, 0.9);
        let message = |number: u32| json!({"data": {"number": number}});
        let mut lost = 0;
        for _ in 0..200 {
            let fault = weather(&[message(1), message(2)]);
            lost += usize::from(fault.is_some_and(|fault| fault.then == Then::BreakOff));
        }
        assert_eq!(lost, 1);
        let mut fine = self::weather(1, 0.0);
        assert!((0..200).all(|_| fine(&[message(1)]).is_none()));
    }
}
