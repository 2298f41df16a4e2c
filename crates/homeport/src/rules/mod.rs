//! `homeport rules`: rules looked after in the store itself or through a server that has it open; a
//! statement tried without either; a rule run over stored history.

mod engine;
mod place;
mod replay;
mod show;
mod trial;

use std::process::ExitCode;

use crate::arguments::RulesCommand;
use crate::print;

pub(crate) use engine::engine;
use place::Rules;

pub(crate) async fn run(command: RulesCommand) -> anyhow::Result<ExitCode> {
    match command {
        RulesCommand::List(asked) => {
            let rules = Rules::open(&asked).await?;
            let listed = rules.list().await;
            rules.close().await?;
            print(&show::list(&listed?))
        }
        RulesCommand::Show(asked) => {
            let rules = Rules::open(&asked.place).await?;
            let rule = rules.get(&asked.name).await;
            rules.close().await?;
            print(&show::rule(&rule?)?)
        }
        RulesCommand::Create(asked) => {
            let document = std::fs::read_to_string(&asked.file)?;
            let rules = Rules::open(&asked.place).await?;
            let rule = rules.create(&asked.name, &document).await;
            rules.close().await?;
            print(&show::rule(&rule?)?)
        }
        RulesCommand::Enable(asked) => switch(&asked, true).await,
        RulesCommand::Disable(asked) => switch(&asked, false).await,
        RulesCommand::Delete(asked) => {
            let rules = Rules::open(&asked.place).await?;
            let deleted = rules.delete(&asked.name).await;
            rules.close().await?;
            deleted?;
            print(&format!("deleted rule {}\n", asked.name))
        }
        RulesCommand::Test(asked) => trial::run(asked),
        RulesCommand::Replay(asked) => replay::run(asked).await,
    }
}

async fn switch(asked: &crate::arguments::NamedRule, is_on: bool) -> anyhow::Result<ExitCode> {
    let rules = Rules::open(&asked.place).await?;
    let switched = rules.switch(&asked.name, is_on).await;
    rules.close().await?;
    switched?;
    let state = if is_on { "enabled" } else { "disabled" };
    print(&format!("rule {} is {state}\n", asked.name))
}
