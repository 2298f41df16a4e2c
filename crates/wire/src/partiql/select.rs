//! SELECT: a query where the condition names partitions, otherwise a scan.

use std::cmp::Ordering;

use homeport_engine::{Engine, StoredItem, StoredPage};
use homeport_item::expression::{
    Condition, Document as _, KeyCondition, Path, PathElement, Projection, SortCondition,
};
use homeport_item::schema::{IndexSchema, KeySchema, TableSchema};
use homeport_item::{Item, Value};
use homeport_partiql::{OrderTerm, Select};
use homeport_store::{PAGE_SIZE_MAX_BYTES, Query, Scan};

use super::keys;
use super::next_token::Resume;
use crate::capacity::{self, Consumed};
use crate::expressions;
use crate::failure::Failure;

/// A SELECT with the options of its request.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) select: Select,
    pub(crate) limit: Option<usize>,
    pub(crate) consistent: bool,
    pub(crate) resume: Resume,
}

/// Rejects an index with several attributes in a part of its key, which PartiQL cannot read.
pub(crate) fn refuse_several(index: &IndexSchema) -> Result<(), Failure> {
    if index.key.is_multi_attribute() {
        return Err(Failure::validation(
            "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys.",
        ));
    }
    Ok(())
}

/// A page of a SELECT.
#[derive(Debug)]
pub(crate) struct Selected {
    pub(crate) items: Vec<Item>,
    pub(crate) next: Option<Resume>,
    pub(crate) consumed: Consumed,
}

/// How a SELECT is executed.
#[derive(Debug)]
struct Plan {
    /// The partitions to query, in order; none for a scan.
    partitions: Vec<Value>,
    sort: Option<(String, SortCondition)>,
    descending: bool,
    /// The filter of the engine.
    filter: Option<Condition>,
    /// Conditions on key attributes beyond the query. The engine does not accept them in a filter.
    late: Option<Condition>,
}

impl Reading {
    /// Reads a page, which is up to one megabyte from the disk.
    pub(crate) fn run(self, engine: &Engine) -> Result<Selected, Failure> {
        let table = self.select.target.table.clone();
        let view = engine.table(&table)?;
        let schema = view.schema();
        let index = self.index(schema)?;
        let keys = index.map_or(&schema.key, |index| &index.key);
        let projection = (!self.select.projection.is_empty())
            .then(|| Projection::new(self.select.projection.iter().cloned()));
        if let Some(projection) = &projection {
            expressions::check_key_paths(schema, &projection.paths)?;
        }
        if let Some(condition) = &self.select.condition {
            expressions::check_key_paths(schema, condition.paths())?;
        }
        let plan = Plan::of(keys, self.select.condition.clone(), &self.select.order)?;
        if let (Some(index), false) = (index, plan.partitions.is_empty()) {
            check_filter(schema, index, &plan)?;
        }
        let mut pages = Pages {
            items: Vec::new(),
            late: plan.late.as_ref(),
            scanned: 0,
            bytes: 0,
            units: 0.0,
            fetched_units: 0.0,
            consistent: self.consistent,
        };
        let next = if plan.partitions.is_empty() {
            let page = engine.scan_stored(&Scan {
                index: self.select.target.index.clone(),
                filter: plan.filter.clone(),
                projection,
                limit: self.limit,
                start: self.resume.start.clone(),
                consistent: self.consistent,
                ..Scan::new(table)
            })?;
            pages.add(&page)?;
            page.next.map(|start| Resume {
                partition: 0,
                start: Some(start),
            })
        } else {
            self.query_partitions(engine, keys, &plan, projection, &mut pages)?
        };
        let consumed = pages.consumed(index);
        let items = pages
            .items
            .into_iter()
            .map(|item| labelled(item, &self.select.projection))
            .collect::<Result<_, _>>()?;
        Ok(Selected {
            items,
            next,
            consumed,
        })
    }

    fn index<'s>(&self, schema: &'s TableSchema) -> Result<Option<&'s IndexSchema>, Failure> {
        let Some(name) = &self.select.target.index else {
            return Ok(None);
        };
        let index = schema.index(name).ok_or_else(|| {
            // Query and Scan name the index in this text.
            Failure::validation("The table does not have the specified index")
        })?;
        refuse_several(index)?;
        if self.consistent && !index.local {
            return Err(Failure::validation(
                "Strongly consistent read is not supported on Global Secondary Indexes",
            ));
        }
        Ok(Some(index))
    }

    /// Queries one partition after the other until the page is full. Returns where the next page starts.
    fn query_partitions(
        &self,
        engine: &Engine,
        keys: &KeySchema,
        plan: &Plan,
        projection: Option<Projection>,
        pages: &mut Pages<'_>,
    ) -> Result<Option<Resume>, Failure> {
        let mut start = self.resume.start.clone();
        for (at, partition) in plan
            .partitions
            .iter()
            .enumerate()
            .skip(self.resume.partition)
        {
            let left = self.limit.map(|limit| limit.saturating_sub(pages.scanned));
            if left == Some(0) || pages.bytes >= PAGE_SIZE_MAX_BYTES {
                return Ok(Some(Resume {
                    partition: at,
                    start: None,
                }));
            }
            let key_condition = KeyCondition {
                partition_name: keys.partition.name.clone(),
                partition: partition.clone(),
                rest: Vec::new(),
                sort: plan.sort.clone(),
            };
            let page = engine.query_stored(&Query {
                index: self.select.target.index.clone(),
                filter: plan.filter.clone(),
                projection: projection.clone(),
                limit: left,
                start: start.take(),
                descending: plan.descending,
                consistent: self.consistent,
                ..Query::new(self.select.target.table.as_str(), key_condition)
            })?;
            pages.add(&page)?;
            if let Some(next) = page.next {
                return Ok(Some(Resume {
                    partition: at,
                    start: Some(next),
                }));
            }
        }
        Ok(None)
    }
}

/// The pages that were read so far.
struct Pages<'p> {
    items: Vec<StoredItem>,
    late: Option<&'p Condition>,
    scanned: usize,
    bytes: usize,
    units: f64,
    fetched_units: f64,
    consistent: bool,
}

impl Pages<'_> {
    fn add(&mut self, page: &StoredPage) -> Result<(), Failure> {
        self.scanned += page.scanned;
        self.bytes += page.scanned_bytes;
        self.units += capacity::read_units(page.scanned_bytes, self.consistent);
        self.fetched_units += capacity::fetch_units(&page.fetched_sizes, self.consistent);
        for item in &page.items {
            let kept = match self.late {
                None => true,
                Some(condition) => condition.matches(&item.to_item()?)?,
            };
            if kept {
                self.items.push(item.clone());
            }
        }
        Ok(())
    }

    fn consumed(&self, index: Option<&IndexSchema>) -> Consumed {
        match index {
            Some(index) => Consumed::of_index(index, self.units, self.fetched_units),
            None => Consumed::of_table(self.units),
        }
    }
}

impl Plan {
    fn of(
        keys: &KeySchema,
        condition: Option<Condition>,
        order: &[OrderTerm],
    ) -> Result<Self, Failure> {
        if !order.is_empty() && condition.is_none() {
            return Err(Failure::validation(
                "Must have WHERE clause in the statement when using ORDER BY clause.",
            ));
        }
        if let Some(term) = order.iter().find(|term| !keys.has(&term.name)) {
            return Err(Failure::validation(format!(
                "Attribute {} in ORDER BY clause must be part of the primary key",
                term.name
            )));
        }
        let mut conjuncts = condition.clone().map_or(Vec::new(), Condition::conjuncts);
        let partition = &keys.partition;
        let naming: Vec<usize> = (0..conjuncts.len())
            .filter(|at| keys::choices(&conjuncts[*at], &partition.name).is_some())
            .collect();
        let &[at] = &naming[..] else {
            // Several conditions on the partition key only filter.
            if !order.is_empty() {
                return Err(Failure::validation(
                    "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.",
                ));
            }
            return Ok(Self {
                partitions: Vec::new(),
                sort: None,
                descending: false,
                filter: condition,
                late: None,
            });
        };
        let mut partitions = Vec::new();
        let named = conjuncts.swap_remove(at);
        for value in keys::choices(&named, &partition.name).unwrap_or_default() {
            keys::check_kind(partition, value)?;
            if partitions.contains(value) {
                return Err(Failure::validation(
                    "Overlapping conditions with range keys are not supported in where clause",
                ));
            }
            partitions.push(value.clone());
        }
        let sort = take_sort(keys, &mut conjuncts)?;
        let descending = sort_partitions(keys, order, &mut partitions)?;
        let (late, filter) = conjuncts
            .into_iter()
            .partition(|conjunct| conjunct.paths().iter().any(|path| keys.has(path.name())));
        Ok(Self {
            partitions,
            sort,
            descending,
            filter: Condition::all(filter),
            late: Condition::all(late),
        })
    }
}

/// Takes the condition on the sort key out, if exactly one is usable in a query.
fn take_sort(
    keys: &KeySchema,
    conjuncts: &mut Vec<Condition>,
) -> Result<Option<(String, SortCondition)>, Failure> {
    let Some(attribute) = &keys.sort else {
        return Ok(None);
    };
    let usable: Vec<usize> = (0..conjuncts.len())
        .filter(|at| keys::sort_condition(&conjuncts[*at], &attribute.name).is_some())
        .collect();
    let &[at] = &usable[..] else {
        return Ok(None);
    };
    let Some(condition) = keys::sort_condition(&conjuncts[at], &attribute.name) else {
        return Ok(None);
    };
    for value in keys::values(&condition) {
        keys::check_kind(attribute, value)?;
    }
    conjuncts.swap_remove(at);
    Ok(Some((attribute.name.clone(), condition)))
}

/// Sorts the partitions as requested. Returns whether each partition is read in descending order.
fn sort_partitions(
    keys: &KeySchema,
    order: &[OrderTerm],
    partitions: &mut [Value],
) -> Result<bool, Failure> {
    if order.is_empty() {
        return Ok(false);
    }
    let term = |name: &str| order.iter().find(|term| term.name == name);
    let partition_term = term(&keys.partition.name);
    if partitions.len() > 1 && partition_term.is_none() {
        return Err(Failure::validation(
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause.",
        ));
    }
    partitions.sort_by(|one, other| {
        if SortCondition::Less(other.clone()).matches(one) {
            Ordering::Less
        } else if SortCondition::Greater(other.clone()).matches(one) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    });
    if partition_term.is_some_and(|term| term.descending) {
        partitions.reverse();
    }
    // Without a term for the sort key, DynamoDB reads each partition in descending order.
    let sort_term = keys.sort.as_ref().and_then(|sort| term(&sort.name));
    Ok(sort_term.is_none_or(|term| term.descending))
}

/// Checks that the filter of an index query only uses attributes that the index projects.
fn check_filter(schema: &TableSchema, index: &IndexSchema, plan: &Plan) -> Result<(), Failure> {
    let mut missing: Vec<&str> = Vec::new();
    for path in plan.filter.iter().flat_map(Condition::paths) {
        if !index.projects(&schema.key, path.name()) && !missing.contains(&path.name()) {
            missing.push(path.name());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid_values(format_args!(
        "Secondary index {} does not project one or more filter attributes: [{}]",
        index.name,
        missing.join(", ")
    )))
}

/// The item in the response to a SELECT: the value of each path under the last name of the path.
pub(crate) fn labelled(item: StoredItem, paths: &[Path]) -> Result<Item, Failure> {
    let item = item.to_item()?;
    if paths.is_empty() {
        return Ok(item);
    }
    let mut shown = Item::new();
    for path in paths {
        if let Some(value) = item.resolve(path)? {
            shown.insert(label(path), value.into_owned());
        }
    }
    Ok(shown)
}

/// The last name of a path with the list indexes after it.
fn label(path: &Path) -> String {
    let mut label = path.name().to_owned();
    for element in path.nested() {
        match element {
            PathElement::Name(name) => label.clone_from(name),
            PathElement::Index(index) => label.push_str(&format!("[{index}]")),
        }
    }
    label
}
