//! `homeport users`: creates, lists and disables people and resets passwords, in the store or through the server that
//! has it open. Passwords are read from standard input or generated, and never given as arguments, which other
//! processes can read.

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_server::{
    ChangePerson, CreatePerson, CreatedPerson, PersonBody, PersonList, ResetPassword, RoleBody,
};
use homeport_store::SystemClock;
use homeport_systems::cursor::Cursor;
use homeport_systems::people::{self, PAGE_MAX, People, PersonName, schema};

use crate::arguments::{KeysAccess, PasswordArguments, UsersCommand};
use crate::client::server_client::ServerClient;
use crate::commands::columns::{cell, render};
use crate::commands::store_access::StoreAccess;
use crate::storage::backend::Backend;
use crate::{begin, print};

const PATH: &str = "/v1/people";
const HEAD: [&str; 5] = ["NAME", "STATE", "ROLES", "SECOND FACTOR", "LAST SIGN-IN"];
/// Longest password that is read, in bytes.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// Access to people.
enum Users {
    Store {
        people: Box<People>,
        backend: Backend,
    },
    Server(Box<ServerClient>),
}

pub(crate) async fn run(command: UsersCommand) -> anyhow::Result<ExitCode> {
    match command {
        UsersCommand::Create(arguments) => {
            let new = CreatePerson {
                name: arguments.name.into(),
                password: password(&arguments.password)?,
                roles: vec![RoleBody {
                    role: arguments.role.to_string(),
                    systems: arguments.systems.into_iter().collect(),
                    groups: arguments.groups.into_iter().collect(),
                    devices: arguments.devices.into_iter().collect(),
                }],
            };
            let users = Users::open(&arguments.access).await?;
            let created = users.create(new).await;
            users.close().await?;
            print(&show_created(&created?, "created", arguments.json)?)
        }
        UsersCommand::List(arguments) => {
            let users = Users::open(&arguments.access).await?;
            let listed = users.list().await;
            users.close().await?;
            print(&show_list(listed?, arguments.json)?)
        }
        UsersCommand::Disable(arguments) => {
            let users = Users::open(&arguments.access).await?;
            let disabled = users.disable(arguments.name).await;
            users.close().await?;
            let name = disabled?.name;
            print(&format!(
                "{name} is disabled; all sessions and tokens are invalid\n"
            ))
        }
        UsersCommand::ResetPassword(arguments) => {
            let new = ResetPassword {
                password: password(&arguments.password)?,
            };
            let users = Users::open(&arguments.access).await?;
            let reset = users.reset_password(arguments.name, new).await;
            users.close().await?;
            print(&show_created(
                &reset?,
                "has another password",
                arguments.json,
            )?)
        }
    }
}

impl Users {
    async fn open(access: &KeysAccess) -> anyhow::Result<Self> {
        let settings = begin(&access.flags)?;
        match StoreAccess::open(&settings, access.url.as_ref()).await? {
            StoreAccess::Store(backend) => {
                backend.store.ensure_tables(&schema::tables()).await?;
                // No command begins a session.
                let settings = people::Settings {
                    session_secs: 0,
                    admin_generation: 0,
                };
                let store = Arc::clone(&backend.store);
                let people = Box::new(People::new(store, Arc::new(SystemClock), settings));
                Ok(Self::Store { people, backend })
            }
            StoreAccess::Server(server) => Ok(Self::Server(server)),
        }
    }

    async fn create(&self, new: CreatePerson) -> anyhow::Result<CreatedPerson> {
        match self {
            Self::Store { people, .. } => {
                let (new, generated) = new.parse()?;
                Ok(CreatedPerson::new(&people.create(new).await?, generated))
            }
            Self::Server(server) => server.ask("POST", PATH, serde_json::to_string(&new)?).await,
        }
    }

    async fn list(&self) -> anyhow::Result<Vec<PersonBody>> {
        let mut people = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.page(cursor.as_deref()).await?;
            people.extend(page.people);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(people);
            }
        }
    }

    async fn page(&self, cursor: Option<&str>) -> anyhow::Result<PersonList> {
        match self {
            Self::Store { people, .. } => {
                let cursor = cursor.map(Cursor::decode).transpose()?;
                Ok(PersonList::from(&people.list(PAGE_MAX, cursor).await?))
            }
            Self::Server(server) => {
                let cursor = cursor.map(|cursor| format!("&cursor={cursor}"));
                let path = format!("{PATH}?limit={PAGE_MAX}{}", cursor.unwrap_or_default());
                server.ask("GET", &path, String::new()).await
            }
        }
    }

    async fn disable(&self, name: PersonName) -> anyhow::Result<PersonBody> {
        let change = ChangePerson {
            is_enabled: Some(false),
            roles: None,
        };
        match self {
            Self::Store { people, .. } => {
                Ok((&people.change(&name, change.try_into()?).await?).into())
            }
            Self::Server(server) => {
                let body = serde_json::to_string(&change)?;
                server.ask("PATCH", &format!("{PATH}/{name}"), body).await
            }
        }
    }

    async fn reset_password(
        &self,
        name: PersonName,
        new: ResetPassword,
    ) -> anyhow::Result<CreatedPerson> {
        match self {
            Self::Store { people, .. } => {
                let (password, generated) = new.parse()?;
                let person = people.reset_password(&name, &password).await?;
                Ok(CreatedPerson::new(&person, generated))
            }
            Self::Server(server) => {
                let path = format!("{PATH}/{name}/reset-password");
                server
                    .ask("POST", &path, serde_json::to_string(&new)?)
                    .await
            }
        }
    }

    async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Store { people, backend } => {
                drop(people);
                backend.close().await
            }
            Self::Server(_) => Ok(()),
        }
    }
}

/// The first line of standard input, if it is asked for.
fn password(arguments: &PasswordArguments) -> anyhow::Result<Option<String>> {
    if !arguments.password_stdin {
        return Ok(None);
    }
    let mut text = String::new();
    let stdin = std::io::stdin().lock();
    stdin
        .take(PASSWORD_BYTES_MAX)
        .read_to_string(&mut text)
        .context("reading the password from standard input")?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Some(line.to_owned())),
        _ => bail!("standard input has no password; write it as the first line"),
    }
}

fn show_created(created: &CreatedPerson, what: &str, json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(created)?));
    }
    let mut text = format!("{} {what}\n", created.person.name);
    if let Some(password) = &created.password {
        text.push_str(&format!("password (shown this once): {password}\n"));
    }
    Ok(text)
}

fn show_list(people: Vec<PersonBody>, json: bool) -> anyhow::Result<String> {
    if json {
        let list = PersonList {
            people,
            next_cursor: None,
        };
        return Ok(format!("{}\n", serde_json::to_string_pretty(&list)?));
    }
    Ok(render(HEAD, people.iter().map(row)))
}

fn row(person: &PersonBody) -> [String; HEAD.len()] {
    let state = if person.is_enabled {
        "enabled"
    } else {
        "disabled"
    };
    let second_factor = if person.has_second_factor {
        "yes"
    } else {
        "no"
    };
    [
        cell(Some(&person.name)),
        state.to_owned(),
        cell(Some(
            &person.roles.iter().map(role).collect::<Vec<_>>().join(", "),
        )),
        second_factor.to_owned(),
        cell(person.last_sign_in_at.as_deref()),
    ]
}

/// A role with what it is limited to.
fn role(role: &RoleBody) -> String {
    let limits = [&role.systems, &role.groups, &role.devices];
    let limits: Vec<&str> = (limits.into_iter().flatten()).map(String::as_str).collect();
    match limits.is_empty() {
        true => role.role.clone(),
        false => format!("{} of {}", role.role, limits.join(" ")),
    }
}
