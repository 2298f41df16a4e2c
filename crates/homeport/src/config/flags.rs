//! The settings as flags of a command. Which concerns a command offers is its own choice; what the
//! environment and the file say counts for every command.

use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::config::concerns::{
    Admin, ApiKeys, CONCERNS, Data, Dynamodb, Encryption, Logs, Push, Records, Rules, Store,
    Telemetry,
};
use crate::config::layers::{Given, Layer, Origin};
use crate::config::setting::{Concern, Setting};
use crate::config::value::Kind;

const CONFIG: &str = "config";

/// The concerns that a command has flags for.
pub(crate) trait Offer {
    const CONCERNS: &'static [&'static Concern];
}

/// Everything: for serving and for showing the configuration.
#[derive(Debug)]
pub(crate) struct Everything;

/// What work on a data directory needs.
#[derive(Debug)]
pub(crate) struct OnDirectory;

/// What work on the store's tables needs.
#[derive(Debug)]
pub(crate) struct OnStore;

/// What work on rules needs.
#[derive(Debug)]
pub(crate) struct OnRules;

/// What looking at devices of all systems needs.
#[derive(Debug)]
pub(crate) struct OnFleet;

/// What work on API keys needs.
#[derive(Debug)]
pub(crate) struct OnKeys;

/// What moving between stores needs.
#[derive(Debug)]
pub(crate) struct OnMove;

impl Offer for Everything {
    const CONCERNS: &'static [&'static Concern] = CONCERNS;
}

impl Offer for OnDirectory {
    const CONCERNS: &'static [&'static Concern] =
        &[&Data::CONCERN, &Encryption::CONCERN, &Logs::CONCERN];
}

impl Offer for OnStore {
    const CONCERNS: &'static [&'static Concern] = &[
        &Data::CONCERN,
        &Store::CONCERN,
        &Encryption::CONCERN,
        &Push::CONCERN,
        &Records::CONCERN,
        &Telemetry::CONCERN,
        &Logs::CONCERN,
    ];
}

impl Offer for OnRules {
    const CONCERNS: &'static [&'static Concern] = &[
        &Data::CONCERN,
        &Store::CONCERN,
        &Encryption::CONCERN,
        &Admin::CONCERN,
        &Push::CONCERN,
        &Records::CONCERN,
        &Telemetry::CONCERN,
        &Rules::CONCERN,
        &Logs::CONCERN,
    ];
}

impl Offer for OnFleet {
    const CONCERNS: &'static [&'static Concern] = &[
        &Data::CONCERN,
        &Store::CONCERN,
        &Encryption::CONCERN,
        &Admin::CONCERN,
        &Push::CONCERN,
        &Records::CONCERN,
        &Telemetry::CONCERN,
        &Logs::CONCERN,
    ];
}

impl Offer for OnKeys {
    const CONCERNS: &'static [&'static Concern] = &[
        &Data::CONCERN,
        &Store::CONCERN,
        &Encryption::CONCERN,
        &Admin::CONCERN,
        &ApiKeys::CONCERN,
        &Logs::CONCERN,
    ];
}

impl Offer for OnMove {
    const CONCERNS: &'static [&'static Concern] = &[
        &Data::CONCERN,
        &Encryption::CONCERN,
        &Store::CONCERN,
        &Dynamodb::CONCERN,
        &Push::CONCERN,
        &Records::CONCERN,
        &Telemetry::CONCERN,
        &Logs::CONCERN,
    ];
}

/// What was given as flags.
pub(crate) struct Flags<O> {
    pub(crate) config: Option<PathBuf>,
    pub(crate) layer: Layer,
    offer: PhantomData<O>,
}

impl<O> std::fmt::Debug for Flags<O> {
    /// Leaves the texts out: some are secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Flags").finish_non_exhaustive()
    }
}

fn settings<O: Offer>() -> impl Iterator<Item = &'static Setting> {
    O::CONCERNS.iter().flat_map(|concern| concern.settings)
}

impl<O: Offer> Args for Flags<O> {
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
    if setting.words.is_empty() {
        return argument.value_parser(StringValueParser::new());
    }
    let words = setting
        .words
        .iter()
        .map(|(word, meaning)| PossibleValue::new(*word).help(meaning.trim()));
    argument.value_parser(PossibleValuesParser::new(words))
}

impl<O: Offer> FromArgMatches for Flags<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let layer = settings::<O>()
            .filter_map(|setting| {
                let text = matches.get_one::<String>(setting.flag)?;
                let given = Given {
                    text: Some(text.clone()),
                    origin: Origin::Flag(setting.flag),
                };
                Some(((setting.table, setting.key), given))
            })
            .collect();
        Ok(Self {
            config: matches.get_one::<PathBuf>(CONFIG).cloned(),
            layer,
            offer: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
