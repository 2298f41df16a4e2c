//! Any text as a statement, a template and a topic filter, each evaluated on a payload from the same input. The explanation
//! must agree with the evaluation.

#![no_main]

use homeport_rules::{Message, Payload, Properties, Statement, Template, TopicFilter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (text, payload) = input.split_once('\0').unwrap_or((input, "{}"));
    let payload = Payload::new(payload.as_bytes());
    let message = Message {
        topic: "a/b",
        payload: &payload,
        client_id: None,
        principal: None,
        source_ip: None,
        account_id: "",
        now_ms: 1_733_529_600_000,
        trace_id: "",
        properties: Properties::default(),
    };
    let mut zeros = |bytes: &mut [u8]| bytes.fill(0);
    if let Ok(statement) = Statement::parse(text) {
        let outcome = statement.evaluate(&message, &mut zeros);
        let explanation = statement.explain(&message, &mut zeros);
        assert_eq!(explanation.outcome, outcome);
    }
    if let Ok(template) = Template::parse(text) {
        let _ = template.render(&message, &mut zeros);
    }
    if let Ok(filter) = TopicFilter::parse(text) {
        let _ = filter.matches(text);
    }
});
