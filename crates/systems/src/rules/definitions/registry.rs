//! The compiled rules, by topic. A registry is immutable and replaced as a whole, so that a message sees
//! either all rules before a change or all after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compiled::{self, Compiled, KnownTables};
use super::compiled_notes;
use super::name::RuleName;
use super::rule::{Rule, RuleView};
use crate::messages::TopicTree;
use crate::rules::execution::stats::RuleStats;

#[derive(Debug, Default)]
pub(in crate::rules) struct Registry {
    rules: BTreeMap<RuleName, Known>,
    running: Vec<Arc<Compiled>>,
    /// The indexes of running rules by topic.
    index: TopicTree<Vec<usize>>,
}

#[derive(Debug)]
struct Known {
    rule: Rule,
    stats: Arc<RuleStats>,
    /// Hints that need the compiled rule.
    notes: Vec<String>,
    problem: Option<String>,
}

impl Registry {
    /// Compiles rules. Counters continue from the previous registry. Of two rules with one name the
    /// later one counts.
    pub(in crate::rules) fn new(rules: Vec<Rule>, tables: &KnownTables, before: &Self) -> Self {
        let mut registry = Self::default();
        let mut by_name = BTreeMap::new();
        for rule in rules {
            by_name.insert(rule.name.clone(), rule);
        }
        for (name, rule) in by_name {
            let known = before.rules.get(&name);
            let stats = known.map_or_else(
                || Arc::new(RuleStats::new(&name)),
                |known| Arc::clone(&known.stats),
            );
            let compiled = compiled::compile(&name, &rule.document, tables, Arc::clone(&stats));
            let notes = compiled.as_ref().map(compiled_notes::notes);
            let notes = notes.unwrap_or_default();
            let problem = match compiled {
                Ok(compiled) if !rule.document.rule_disabled => {
                    let at = registry.running.len();
                    let filter = compiled.statement.filter().as_str();
                    registry.index.value_mut(filter).push(at);
                    registry.running.push(Arc::new(compiled));
                    None
                }
                Ok(_) => None,
                Err(error) => {
                    tracing::warn!(rule = %name, %error, "a rule cannot run");
                    Some(error.to_string())
                }
            };
            registry.rules.insert(
                name,
                Known {
                    rule,
                    stats,
                    notes,
                    problem,
                },
            );
        }
        registry
    }

    /// The rules that match a topic, by name.
    pub(in crate::rules) fn matching(&self, topic: &str) -> impl Iterator<Item = &Arc<Compiled>> {
        let mut found = Vec::new();
        self.index
            .matching(topic, &mut |at| found.extend_from_slice(at));
        found.sort_unstable();
        found.into_iter().map(|at| &self.running[at])
    }

    pub(in crate::rules) fn running(&self, name: &RuleName) -> Option<&Arc<Compiled>> {
        let at = self.running.binary_search_by(|rule| rule.name.cmp(name));
        at.ok().map(|at| &self.running[at])
    }

    pub(in crate::rules) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(in crate::rules) fn rule(&self, name: &RuleName) -> Option<&Rule> {
        self.rules.get(name).map(|known| &known.rule)
    }

    pub(in crate::rules) fn stats(&self, name: &RuleName) -> Option<&Arc<RuleStats>> {
        self.rules.get(name).map(|known| &known.stats)
    }

    pub(in crate::rules) fn view(&self, name: &RuleName) -> Option<RuleView> {
        self.rules.get(name).map(view)
    }

    /// The rules after `after`, by name.
    pub(in crate::rules) fn views_after(
        &self,
        after: Option<&str>,
    ) -> impl Iterator<Item = RuleView> {
        let rules = self.rules.iter();
        rules
            .filter(move |(name, _)| after.is_none_or(|after| name.as_str() > after))
            .map(|(_, known)| view(known))
    }
}

fn view(known: &Known) -> RuleView {
    let mut notes = known.rule.notes();
    notes.extend_from_slice(&known.notes);
    if known.stats.has_ttl_in_millis() {
        notes.push(
            "the expiry comes in milliseconds; it is stored in seconds, as stores read it"
                .to_owned(),
        );
    }
    RuleView {
        rule: known.rule.clone(),
        notes,
        problem: known.problem.clone(),
        counts: known.stats.counts(),
    }
}
