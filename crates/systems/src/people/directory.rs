//! Creates, lists, changes and deletes people.

use homeport_item::Number;
use homeport_item::expression::{Condition, KeyCondition, Path};
use homeport_store::{
    Action, Delete, Get, Put, Query, StoreError, TransactError, Transaction, WriteError,
};
use uuid::Uuid;

use super::person::{ADMIN_NAME, PersonBody, StoredPerson};
use super::roles::{self, Grant};
use super::{
    ATTEMPTS_MAX, PAGE_MAX, PEOPLE_MAX, Password, People, PeopleError, Person, PersonName, person,
    schema,
};
use crate::cursor::Cursor;
use crate::pages::{self, Page};

const LIST: &str = "people";

/// A person to create.
#[derive(Debug, Clone)]
pub struct NewPerson {
    pub name: PersonName,
    /// Without one, the person cannot sign in with a password.
    pub password: Option<Password>,
    pub roles: Vec<Grant>,
}

/// What an administrator changes of a person; absent parts stay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PersonChange {
    pub roles: Option<Vec<Grant>>,
    pub is_enabled: Option<bool>,
}

/// A change of the directory.
pub(super) enum DirectoryChange {
    Create(StoredPerson),
    Update(StoredPerson),
    Remove(StoredPerson),
}

impl People {
    /// # Errors
    /// If the name is taken or reserved, a role is invalid, there are too many people, or the store fails.
    pub async fn create(&self, new: NewPerson) -> Result<Person, PeopleError> {
        let person = self.new_person(new).await?;
        let person = self
            .change_directory(Vec::new(), |_| Ok(DirectoryChange::Create(person.clone())))
            .await?;
        Ok(person.shown())
    }

    pub(super) async fn new_person(&self, new: NewPerson) -> Result<StoredPerson, PeopleError> {
        if new.name.as_str() == ADMIN_NAME {
            return Err(PeopleError::ReservedName);
        }
        roles::check(&new.roles)?;
        let password_hash = match &new.password {
            Some(password) => Some(self.hasher.hash(password).await?),
            None => None,
        };
        let now = self.now();
        Ok(StoredPerson {
            name: new.name,
            version: 1,
            body: PersonBody {
                id: Uuid::new_v4(),
                roles: new.roles,
                is_enabled: true,
                password_hash,
                second_factor: None,
                generation: 1,
                created_at_ms: now.0,
                updated_at_ms: now.0,
                last_sign_in_at_ms: None,
            },
        })
    }

    /// Lists people by name.
    ///
    /// # Errors
    /// If the cursor belongs to another list, or the store fails.
    pub async fn list(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Person>, PeopleError> {
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let query = all_people().starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let schema = schema::people();
        let page = pages::read_page(&*self.store, &schema, query, LIST, limit).await?;
        Ok(page.readable(&schema, |item| {
            Ok::<_, PeopleError>(StoredPerson::from_item(item)?.shown())
        }))
    }

    /// # Errors
    /// If there is no such person, or the store fails.
    pub async fn get(&self, name: &PersonName) -> Result<Person, PeopleError> {
        Ok(self.stored(name.as_str()).await?.shown())
    }

    /// Changes roles, or enables or disables a person. A disabled person's sessions and tokens are invalid at once in
    /// this process, and within [`CACHE_SECS`](super::CACHE_SECS) in others.
    ///
    /// # Errors
    /// If there is no such person, it is the last administrator, a role is invalid, or the store fails.
    pub async fn change(
        &self,
        name: &PersonName,
        change: PersonChange,
    ) -> Result<Person, PeopleError> {
        if let Some(new) = &change.roles {
            roles::check(new)?;
        }
        let changed = self
            .change_directory(Vec::new(), |people| {
                let mut person = find(people, name)?;
                let body = &mut person.body;
                if let Some(new) = &change.roles {
                    body.roles.clone_from(new);
                }
                if change.is_enabled == Some(false) && body.is_enabled {
                    body.generation += 1;
                }
                body.is_enabled = change.is_enabled.unwrap_or(body.is_enabled);
                Ok(DirectoryChange::Update(person))
            })
            .await?;
        if !changed.body.is_enabled {
            self.delete_credentials(changed.body.id).await?;
        }
        Ok(changed.shown())
    }

    /// Sets another password, and ends all sessions and tokens of the person.
    ///
    /// # Errors
    /// If there is no such person, or the store fails.
    pub async fn reset_password(
        &self,
        name: &PersonName,
        password: &Password,
    ) -> Result<Person, PeopleError> {
        let hash = self.hasher.hash(password).await?;
        let (person, ()) = self
            .edit(name.as_str(), |body| {
                body.password_hash = Some(hash.clone());
                body.generation += 1;
                Ok(())
            })
            .await?;
        self.delete_credentials(person.body.id).await?;
        Ok(person.shown())
    }

    /// Removes the second factor of a person who has lost it.
    ///
    /// # Errors
    /// If there is no such person, or the store fails.
    pub async fn reset_second_factor(&self, name: &PersonName) -> Result<Person, PeopleError> {
        let (person, ()) = self
            .edit(name.as_str(), |body| {
                body.second_factor = None;
                Ok(())
            })
            .await?;
        Ok(person.shown())
    }

    /// Deletes a person with all sessions and tokens.
    ///
    /// # Errors
    /// If there is no such person, it is the last administrator, or the store fails.
    pub async fn delete(&self, name: &PersonName) -> Result<(), PeopleError> {
        let removed = self
            .change_directory(Vec::new(), |people| {
                find(people, name).map(DirectoryChange::Remove)
            })
            .await?;
        self.delete_credentials(removed.body.id).await
    }

    pub(super) async fn stored(&self, name: &str) -> Result<StoredPerson, PeopleError> {
        let found = self.find_stored(name).await?;
        found.ok_or_else(|| PeopleError::Missing(name.to_owned()))
    }

    pub(super) async fn find_stored(
        &self,
        name: &str,
    ) -> Result<Option<StoredPerson>, PeopleError> {
        let get = Get::new(schema::PEOPLE, StoredPerson::key(name));
        let item = self.store.get(get).await?;
        item.as_ref().map(StoredPerson::from_item).transpose()
    }

    /// Changes what concerns only one person, on the newest state. Nothing is written if nothing changes.
    pub(super) async fn edit<T>(
        &self,
        name: &str,
        edit: impl Fn(&mut PersonBody) -> Result<T, PeopleError>,
    ) -> Result<(StoredPerson, T), PeopleError> {
        for _ in 0..ATTEMPTS_MAX {
            let mut person = self.stored(name).await?;
            let before = person.to_item()?;
            let value = edit(&mut person.body)?;
            if person.to_item()? == before {
                return Ok((person, value));
            }
            let is_unchanged = has_version(person.version);
            person.version += 1;
            person.body.updated_at_ms = self.now().0;
            let put = Put::new(schema::PEOPLE, person.to_item()?).when(is_unchanged);
            match self.store.put(put).await {
                Ok(_) => {
                    self.forget(person.body.id);
                    return Ok((person, value));
                }
                Err(WriteError::ConditionFailed { .. }) => {}
                Err(WriteError::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Changes who there is or what someone may do. All such changes are made one after another, each on the state that
    /// the one before has left, because an enabled administrator must remain.
    pub(super) async fn change_directory(
        &self,
        further: Vec<Action>,
        change: impl Fn(&[StoredPerson]) -> Result<DirectoryChange, PeopleError>,
    ) -> Result<StoredPerson, PeopleError> {
        for _ in 0..ATTEMPTS_MAX {
            let key = person::key(schema::DIRECTORY_PARTITION, schema::DIRECTORY_PARTITION);
            let directory = self.store.get(Get::new(schema::PEOPLE, key)).await?;
            let version = directory.as_ref().map(person::version).transpose()?;
            let before = self.everyone().await?;
            let change = change(&before)?;
            let (person, action) = self.action(&before, change)?;
            let next = person::item(
                schema::DIRECTORY_PARTITION,
                schema::DIRECTORY_PARTITION,
                version.unwrap_or_default() + 1,
                &serde_json::Map::new(),
            )?;
            let is_unchanged = match version {
                Some(version) => has_version(version),
                None => Condition::not_exists(schema::VERSION),
            };
            let mut actions = vec![
                action,
                Put::new(schema::PEOPLE, next).when(is_unchanged).into(),
            ];
            actions.extend(further.clone());
            match self.store.transact(Transaction::new(actions)).await {
                Ok(()) => {
                    self.forget(person.body.id);
                    return Ok(person);
                }
                Err(TransactError::Cancelled(_)) => {}
                Err(TransactError::TokenMismatch) => return Err(StoreError::Throttled.into()),
                Err(TransactError::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Throttled.into())
    }

    fn action(
        &self,
        before: &[StoredPerson],
        change: DirectoryChange,
    ) -> Result<(StoredPerson, Action), PeopleError> {
        let is_named = |person: &&StoredPerson, name: &PersonName| person.name == *name;
        let (person, action, stays) = match change {
            DirectoryChange::Create(person) => {
                if before.iter().any(|known| is_named(&known, &person.name)) {
                    return Err(PeopleError::Exists(person.name.into()));
                }
                if before.len() >= PEOPLE_MAX {
                    return Err(PeopleError::TooManyPeople);
                }
                let put = Put::new(schema::PEOPLE, person.to_item()?)
                    .when(Condition::not_exists(schema::VERSION));
                (person, put.into(), true)
            }
            DirectoryChange::Update(mut person) => {
                let is_unchanged = has_version(person.version);
                person.version += 1;
                person.body.updated_at_ms = self.now().0;
                let put = Put::new(schema::PEOPLE, person.to_item()?).when(is_unchanged);
                (person, put.into(), true)
            }
            DirectoryChange::Remove(person) => {
                let key = StoredPerson::key(person.name.as_str());
                let delete = Delete::new(schema::PEOPLE, key).when(has_version(person.version));
                (person, delete.into(), false)
            }
        };
        let had_one = before.iter().any(StoredPerson::is_active_administrator);
        let others = before.iter().filter(|known| !is_named(known, &person.name));
        let has_one = others
            .chain(stays.then_some(&person))
            .any(StoredPerson::is_active_administrator);
        if had_one && !has_one {
            return Err(PeopleError::LastAdministrator);
        }
        Ok((person, action))
    }

    /// All people, from consistent reads.
    async fn everyone(&self) -> Result<Vec<StoredPerson>, PeopleError> {
        let mut people = Vec::new();
        let mut query = all_people();
        loop {
            let page = self.store.query(query.clone()).await?;
            for item in &page.items {
                people.push(StoredPerson::from_item(item)?);
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(people);
            }
        }
    }
}

fn find(people: &[StoredPerson], name: &PersonName) -> Result<StoredPerson, PeopleError> {
    let found = people.iter().find(|person| person.name == *name).cloned();
    found.ok_or_else(|| PeopleError::Missing(name.as_str().to_owned()))
}

fn all_people() -> Query {
    let condition = KeyCondition::new(schema::PARTITION, schema::PERSON_PARTITION);
    let mut query = Query::new(schema::PEOPLE, condition);
    query.consistent = true;
    query
}

pub(super) fn has_version(version: i64) -> Condition {
    Path::new(schema::VERSION).equals(Number::from(version))
}
