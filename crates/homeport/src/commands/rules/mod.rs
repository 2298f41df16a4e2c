//! `homeport rules`: manages rules in the store or through the server that has it open, tries statements, and runs rules
//! over stored history.

mod access;
mod replay;
mod show;
mod trial;

use std::process::ExitCode;

use crate::arguments::RulesCommand;
use crate::print;

use access::Rules;

pub(crate) async fn run(command: RulesCommand) -> anyhow::Result<ExitCode> {
    match command {
        RulesCommand::List(arguments) => {
            let rules = Rules::open(&arguments).await?;
            let listed = rules.list().await;
            rules.close().await?;
            print(&show::list(&listed?))
        }
        RulesCommand::Show(arguments) => {
            let rules = Rules::open(&arguments.access).await?;
            let rule = rules.get(&arguments.name).await;
            rules.close().await?;
            print(&show::rule(&rule?)?)
        }
        RulesCommand::Create(arguments) => {
            let document = std::fs::read_to_string(&arguments.file)?;
            let rules = Rules::open(&arguments.access).await?;
            let rule = rules.create(&arguments.name, &document).await;
            rules.close().await?;
            print(&show::rule(&rule?)?)
        }
        RulesCommand::Enable(arguments) => switch(&arguments, true).await,
        RulesCommand::Disable(arguments) => switch(&arguments, false).await,
        RulesCommand::Delete(arguments) => {
            let rules = Rules::open(&arguments.access).await?;
            let deleted = rules.delete(&arguments.name).await;
            rules.close().await?;
            deleted?;
            print(&format!("deleted rule {}\n", arguments.name))
        }
        RulesCommand::Test(arguments) => trial::run(arguments),
        RulesCommand::Replay(arguments) => replay::run(arguments).await,
    }
}

async fn switch(arguments: &crate::arguments::NamedRule, is_on: bool) -> anyhow::Result<ExitCode> {
    let rules = Rules::open(&arguments.access).await?;
    let switched = rules.switch(&arguments.name, is_on).await;
    rules.close().await?;
    switched?;
    let state = if is_on { "enabled" } else { "disabled" };
    print(&format!("rule {} is {state}\n", arguments.name))
}
