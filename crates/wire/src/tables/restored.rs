//! The target table of a restore: the settings of the source with the changes of the request.

use homeport_engine::{NewTable, RestoreError, TableDescription};
use homeport_item::schema::{IndexSchema, TableSchema};
use serde::Deserialize;

use super::definition::{
    self, EncryptionInput, IndexInput, KeySchemaElement, OnDemandInput, ThroughputInput,
};
use super::settings::{Billing, Encryption, OnDemand, Restored, TableSettings};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Element, Field, List, Text};
use crate::output;
use crate::service::Service;

/// The members of restore requests that override settings of the source table.
#[derive(Debug, Deserialize)]
pub(crate) struct Overrides<'a> {
    #[serde(rename = "BillingModeOverride", borrow)]
    billing_mode: Option<Text<'a>>,
    #[serde(rename = "GlobalSecondaryIndexOverride", borrow)]
    global_indexes: Option<List<Element<IndexInput<'a>>>>,
    #[serde(rename = "LocalSecondaryIndexOverride", borrow)]
    local_indexes: Option<List<Element<IndexInput<'a>>>>,
    #[serde(rename = "ProvisionedThroughputOverride")]
    throughput: Option<Field<ThroughputInput>>,
    #[serde(rename = "OnDemandThroughputOverride")]
    on_demand: Option<Field<OnDemandInput>>,
    #[serde(rename = "SSESpecificationOverride", borrow)]
    encryption: Option<Field<EncryptionInput<'a>>>,
}

impl Overrides<'_> {
    pub(crate) fn constrain(&self, constraints: &mut Constraints) {
        constraints.one_of(
            "billingModeOverride",
            self.billing_mode.as_ref(),
            &["PROVISIONED", "PAY_PER_REQUEST"],
        );
        definition::constrain_throughput(
            constraints,
            "provisionedThroughputOverride",
            self.throughput.as_ref(),
        );
        for (name, indexes) in [
            ("globalSecondaryIndexOverride", &self.global_indexes),
            ("localSecondaryIndexOverride", &self.local_indexes),
        ] {
            for (at, Element(index)) in indexes.iter().flat_map(|list| list.0.iter().enumerate()) {
                let path = format!("{name}.{}.member", at + 1);
                definition::constrain_index(constraints, &path, index);
            }
        }
    }

    /// The new table from `source` with another name. Tags, streams, expiry, deletion protection and point-in-time recovery are
    /// not copied, as in DynamoDB.
    pub(crate) fn table(
        &self,
        name: &str,
        source: &TableSchema,
        settings: &str,
        restored: Restored,
        now_ms: i64,
    ) -> Result<NewTable, Failure> {
        let mut settings = TableSettings {
            tags: std::collections::BTreeMap::new(),
            deletion_protection: false,
            insights: std::collections::BTreeMap::new(),
            restored: Some(restored),
            ..TableSettings::read(settings)
        };
        let mut indexes = self.kept(source, true)?;
        indexes.extend(self.kept(source, false)?);
        settings
            .index_throughput
            .retain(|name, _| indexes.iter().any(|index| index.name == *name));
        self.set_billing(&mut settings, now_ms)?;
        for Element(given) in self.global_indexes.iter().flat_map(|list| &list.0) {
            if let (Some(name), Some(Field(throughput))) =
                (&given.index_name, &given.provisioned_throughput)
            {
                let throughput = definition::throughput(throughput);
                definition::check_units(throughput, Some(name.as_str()))?;
                let name = name.as_str().to_owned();
                settings.index_throughput.insert(name, throughput);
            }
        }
        if let Some(Field(given)) = &self.encryption {
            settings.encryption = definition::encryption(given)?.map(|key| Encryption { key });
        }
        Ok(NewTable {
            schema: TableSchema {
                name: name.to_owned(),
                key: source.key.clone(),
                indexes,
                ttl_attribute: None,
                stream: None,
            },
            settings: settings.write(),
        })
    }

    fn set_billing(&self, settings: &mut TableSettings, now_ms: i64) -> Result<(), Failure> {
        if let Some(mode) = &self.billing_mode {
            let billing = match mode.as_str() {
                "PROVISIONED" => Billing::Provisioned,
                _ => Billing::PayPerRequest,
            };
            if billing == Billing::PayPerRequest && settings.billing != billing {
                settings.pay_per_request_at_ms = Some(now_ms);
                settings.throughput = super::settings::Throughput::default();
                settings.index_throughput.clear();
            }
            settings.billing = billing;
        }
        if let Some(Field(given)) = &self.throughput {
            if settings.billing == Billing::PayPerRequest {
                return Err(Failure::invalid_values(
                    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
                ));
            }
            settings.throughput = definition::throughput(given);
            definition::check_units(settings.throughput, None)?;
        }
        if settings.billing == Billing::Provisioned && settings.throughput.read == 0 {
            return Err(Failure::invalid_values(
                "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
            ));
        }
        if let Some(Field(given)) = &self.on_demand {
            settings.on_demand = Some(OnDemand {
                read_max: given.max_read_request_units.map(|units| units.0),
                write_max: given.max_write_request_units.map(|units| units.0),
            });
        }
        Ok(())
    }

    /// The local or global indexes of the source that the new table gets. A request may omit some, and must describe the others
    /// unchanged.
    fn kept(&self, source: &TableSchema, local: bool) -> Result<Vec<IndexSchema>, Failure> {
        let given = if local {
            &self.local_indexes
        } else {
            &self.global_indexes
        };
        let known = source.indexes.iter().filter(|index| index.local == local);
        let Some(List(given)) = given else {
            return Ok(known.cloned().collect());
        };
        let mut kept: Vec<IndexSchema> = Vec::with_capacity(given.len());
        for Element(given) in given {
            let name = given.index_name.as_ref().map_or("", Text::as_str);
            let matching = source.indexes.iter().find(|index| {
                index.name == name
                    && index.local == local
                    && has_keys(index, given.key_schema.as_ref())
                    && definition::projection(given.projection.as_ref())
                        .is_ok_and(|projection| projection == index.projection)
            });
            let Some(index) = matching else {
                return Err(Failure::invalid_values(format_args!(
                    "The index {name} does not match any index of the source table"
                )));
            };
            if kept.iter().any(|known| known.name == name) {
                return Err(Failure::invalid_values(format_args!(
                    "Duplicate index name: {name}"
                )));
            }
            kept.push(index.clone());
        }
        Ok(kept)
    }
}

fn has_keys(index: &IndexSchema, given: Option<&List<Element<KeySchemaElement<'_>>>>) -> bool {
    let given = given.map_or(&[][..], |given| &given.0);
    let names = given
        .iter()
        .map(|Element(element)| element.attribute_name.as_ref().map(Text::as_str));
    let known = index
        .key
        .attributes()
        .map(|attribute| Some(attribute.name.as_str()));
    names.eq(known)
}

/// The response to a request that started a restore.
pub(crate) fn respond(
    service: &Service,
    begun: Result<TableDescription, RestoreError>,
) -> Result<Vec<u8>, Failure> {
    let described = super::description::describe(
        &service.config().region,
        &begun?,
        &homeport_engine::TableSize::default(),
        "CREATING",
    );
    output::single_member("TableDescription", &described)
}
