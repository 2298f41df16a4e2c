//! The settings as flags. Each command offers the sections that it needs. The environment and the file apply to every
//! command.

use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::config::layers::{Layer, Origin, RawSetting};
use crate::config::sections::{
    Admin, ApiKeys, Data, Dynamodb, Encryption, Logs, Push, Records, Rules, SECTIONS, Store,
    Telemetry,
};
use crate::config::setting::{Section, Setting};
use crate::config::value::Kind;

const CONFIG: &str = "config";

/// The sections that a command has flags for.
pub(crate) trait SectionSet {
    const SECTIONS: &'static [&'static Section];
}

/// All sections, for serving and for showing the configuration.
#[derive(Debug)]
pub(crate) struct AllSections;

/// Sections for commands on a data directory.
#[derive(Debug)]
pub(crate) struct DirectorySections;

/// Sections for commands on the store's tables.
#[derive(Debug)]
pub(crate) struct StoreSections;

/// Sections for commands on rules.
#[derive(Debug)]
pub(crate) struct RulesSections;

/// Sections for commands on devices of all systems.
#[derive(Debug)]
pub(crate) struct FleetSections;

/// Sections for commands on API keys.
#[derive(Debug)]
pub(crate) struct KeysSections;

/// Sections for moving tables between stores.
#[derive(Debug)]
pub(crate) struct MoveSections;

impl SectionSet for AllSections {
    const SECTIONS: &'static [&'static Section] = SECTIONS;
}

impl SectionSet for DirectorySections {
    const SECTIONS: &'static [&'static Section] =
        &[&Data::SECTION, &Encryption::SECTION, &Logs::SECTION];
}

impl SectionSet for StoreSections {
    const SECTIONS: &'static [&'static Section] = &[
        &Data::SECTION,
        &Store::SECTION,
        &Encryption::SECTION,
        &Push::SECTION,
        &Records::SECTION,
        &Telemetry::SECTION,
        &Logs::SECTION,
    ];
}

impl SectionSet for RulesSections {
    const SECTIONS: &'static [&'static Section] = &[
        &Data::SECTION,
        &Store::SECTION,
        &Encryption::SECTION,
        &Admin::SECTION,
        &Push::SECTION,
        &Records::SECTION,
        &Telemetry::SECTION,
        &Rules::SECTION,
        &Logs::SECTION,
    ];
}

impl SectionSet for FleetSections {
    const SECTIONS: &'static [&'static Section] = &[
        &Data::SECTION,
        &Store::SECTION,
        &Encryption::SECTION,
        &Admin::SECTION,
        &Push::SECTION,
        &Records::SECTION,
        &Telemetry::SECTION,
        &Logs::SECTION,
    ];
}

impl SectionSet for KeysSections {
    const SECTIONS: &'static [&'static Section] = &[
        &Data::SECTION,
        &Store::SECTION,
        &Encryption::SECTION,
        &Admin::SECTION,
        &ApiKeys::SECTION,
        &Logs::SECTION,
    ];
}

impl SectionSet for MoveSections {
    const SECTIONS: &'static [&'static Section] = &[
        &Data::SECTION,
        &Encryption::SECTION,
        &Store::SECTION,
        &Dynamodb::SECTION,
        &Push::SECTION,
        &Records::SECTION,
        &Telemetry::SECTION,
        &Logs::SECTION,
    ];
}

/// The settings given as flags.
pub(crate) struct Flags<O> {
    pub(crate) config: Option<PathBuf>,
    pub(crate) layer: Layer,
    sections: PhantomData<O>,
}

impl<O> std::fmt::Debug for Flags<O> {
    /// Omits the values, some of which are secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Flags").finish_non_exhaustive()
    }
}

fn settings<O: SectionSet>() -> impl Iterator<Item = &'static Setting> {
    O::SECTIONS.iter().flat_map(|section| section.settings)
}

impl<O: SectionSet> Args for Flags<O> {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("The configuration file; homeport.toml of the working directory if it is there [env: HOMEPORT_CONFIG]");
        settings::<O>().fold(command.arg(config), |command, setting| {
            command.arg(argument(setting))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(setting: &'static Setting) -> Arg {
    let mut help = format!("{} [env: {}]", setting.description(), setting.variable());
    if let Some(default) = setting.default {
        help.push_str(&format!(" [default: {default}]"));
    }
    let argument = Arg::new(setting.flag)
        .long(setting.flag)
        .value_name(setting.value_name)
        .action(ArgAction::Set)
        .help(help);
    if setting.kind == Kind::Boolean {
        return argument.num_args(0..=1).default_missing_value("true");
    }
    if setting.choices.is_empty() {
        return argument.value_parser(StringValueParser::new());
    }
    let words = setting
        .choices
        .iter()
        .map(|(word, meaning)| PossibleValue::new(*word).help(meaning.trim()));
    argument.value_parser(PossibleValuesParser::new(words))
}

impl<O: SectionSet> FromArgMatches for Flags<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let layer = settings::<O>()
            .filter_map(|setting| {
                let text = matches.get_one::<String>(setting.flag)?;
                let given = RawSetting {
                    text: Some(text.clone()),
                    origin: Origin::Flag(setting.flag),
                };
                Some(((setting.table, setting.key), given))
            })
            .collect();
        Ok(Self {
            config: matches.get_one::<PathBuf>(CONFIG).cloned(),
            layer,
            sections: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
