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

/// Declares the sections of commands.
macro_rules! section_sets {
    ($($(#[$doc:meta])* $name:ident: $sections:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl SectionSet for $name {
            const SECTIONS: &'static [&'static Section] = $sections;
        }
    )*};
}

section_sets! {
    /// All sections, for serving and for showing the configuration.
    AllSections: SECTIONS;
    /// Sections for commands on a data directory.
    DirectorySections: &[&Data::SECTION, &Encryption::SECTION, &Logs::SECTION];
    /// Sections for commands on the store's tables.
    StoreSections: &[
        &Data::SECTION, &Store::SECTION, &Encryption::SECTION, &Push::SECTION,
        &Records::SECTION, &Telemetry::SECTION, &Logs::SECTION,
    ];
    /// Sections for commands on rules.
    RulesSections: &[
        &Data::SECTION, &Store::SECTION, &Encryption::SECTION, &Admin::SECTION,
        &Push::SECTION, &Records::SECTION, &Telemetry::SECTION, &Rules::SECTION,
        &Logs::SECTION,
    ];
    /// Sections for commands on devices of all systems.
    FleetSections: &[
        &Data::SECTION, &Store::SECTION, &Encryption::SECTION, &Admin::SECTION,
        &Push::SECTION, &Records::SECTION, &Telemetry::SECTION, &Logs::SECTION,
    ];
    /// Sections for commands on API keys.
    KeysSections: &[
        &Data::SECTION, &Store::SECTION, &Encryption::SECTION, &Admin::SECTION,
        &ApiKeys::SECTION, &Logs::SECTION,
    ];
    /// Sections for moving tables between stores.
    MoveSections: &[
        &Data::SECTION, &Encryption::SECTION, &Store::SECTION, &Dynamodb::SECTION,
        &Push::SECTION, &Records::SECTION, &Telemetry::SECTION, &Logs::SECTION,
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
