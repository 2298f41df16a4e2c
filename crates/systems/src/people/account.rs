//! What people do with their own account: password, second factor and personal access tokens.

use super::access::Access;
use super::credential::{Credential, CredentialBody, CredentialKind, RawCredential};
use super::person::PersonName;
use super::roles::{self, Grant};
use super::second_factor::SecondFactor;
use super::{
    Enrolment, Password, People, PeopleError, Person, RecoveryCodes, TOKEN_DAYS_MAX, TOKENS_MAX,
};

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;
/// Longest name of a token, in characters.
pub(super) const LABEL_CHARS_MAX: usize = 100;

/// A personal access token to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewToken {
    pub label: String,
    pub role: Grant,
    pub days: i64,
}

impl People {
    /// The account of a person.
    ///
    /// # Errors
    /// For the admin token, which has none, or if the store fails.
    pub async fn account(&self, access: &Access) -> Result<Person, PeopleError> {
        self.get(&own_name(access)?).await
    }

    /// Changes the password and ends all other sessions. Tokens stay valid.
    ///
    /// # Errors
    /// If the old password is wrong, or the store fails.
    pub async fn change_password(
        &self,
        access: &Access,
        old: String,
        new: &Password,
    ) -> Result<(), PeopleError> {
        let name = own_name(access)?;
        let old_hash = self.check_password(&name, old).await?;
        let hash = self.hasher.hash(new).await?;
        self.edit(name.as_str(), |body| {
            if body.password_hash.as_ref() != Some(&old_hash) {
                return Err(PeopleError::WrongPassword);
            }
            body.password_hash = Some(hash.clone());
            Ok(())
        })
        .await?;
        let but = access.credential.map(|shown| shown.id);
        self.end_sessions(access.person, but).await
    }

    async fn check_password(
        &self,
        name: &PersonName,
        password: String,
    ) -> Result<String, PeopleError> {
        let hash = self.stored(name.as_str()).await?.body.password_hash;
        if !self.hasher.verify(password, hash.clone()).await? {
            return Err(PeopleError::WrongPassword);
        }
        hash.ok_or(PeopleError::WrongPassword)
    }

    /// Begins to set up a second factor. It is required only after [`People::confirm_second_factor`].
    ///
    /// # Errors
    /// If the password is wrong, there is a second factor already, or the store fails.
    pub async fn begin_second_factor(
        &self,
        access: &Access,
        password: String,
    ) -> Result<Enrolment, PeopleError> {
        let name = own_name(access)?;
        self.check_password(&name, password).await?;
        let (factor, enrolment) = SecondFactor::new(&name);
        self.edit(name.as_str(), |body| {
            if body
                .second_factor
                .as_ref()
                .is_some_and(|factor| factor.is_confirmed)
            {
                return Err(PeopleError::HasSecondFactor);
            }
            body.second_factor = Some(factor.clone());
            Ok(())
        })
        .await?;
        Ok(enrolment)
    }

    /// Requires the second factor from now on, once a code shows that the app has it.
    ///
    /// # Errors
    /// If the code is wrong, none is being set up, or the store fails.
    pub async fn confirm_second_factor(
        &self,
        access: &Access,
        code: &str,
    ) -> Result<RecoveryCodes, PeopleError> {
        let name = own_name(access)?;
        let now = self.now();
        let (_, codes) = self
            .edit(name.as_str(), |body| match &mut body.second_factor {
                Some(factor) if !factor.is_confirmed => factor.confirm(code, now.seconds().0),
                _ => Err(PeopleError::NoSecondFactor),
            })
            .await?;
        Ok(codes)
    }

    /// Removes the second factor.
    ///
    /// # Errors
    /// If the password is wrong, or the store fails.
    pub async fn remove_second_factor(
        &self,
        access: &Access,
        password: String,
    ) -> Result<(), PeopleError> {
        let name = own_name(access)?;
        self.check_password(&name, password).await?;
        self.reset_second_factor(&name).await?;
        Ok(())
    }

    /// Creates a personal access token. Only this answer contains its text.
    ///
    /// # Errors
    /// If its role is above the person's own, a value is out of bounds, there are too many, or the store fails.
    pub async fn create_token(
        &self,
        access: &Access,
        new: NewToken,
    ) -> Result<(Credential, RawCredential), PeopleError> {
        let name = own_name(access)?;
        let chars = new.label.chars().count();
        if !(1..=LABEL_CHARS_MAX).contains(&chars) || new.label.chars().any(char::is_control) {
            return Err(PeopleError::InvalidToken(
                "name must be 1 to 100 printable characters",
            ));
        }
        if !(1..=TOKEN_DAYS_MAX).contains(&new.days) {
            return Err(PeopleError::InvalidToken("days must be 1 to 366"));
        }
        roles::check(std::slice::from_ref(&new.role))?;
        if !access.permits(|own| own.role >= new.role.role) {
            return Err(PeopleError::InvalidToken(
                "a token cannot have a role above your own",
            ));
        }
        if self
            .credentials(access.person, CredentialKind::Token)
            .await?
            .len()
            >= TOKENS_MAX
        {
            return Err(PeopleError::TooManyTokens);
        }
        let person = self.stored(name.as_str()).await?;
        let now = self.now();
        let body = CredentialBody {
            kind: CredentialKind::Token,
            name: name.into(),
            generation: person.body.generation,
            created_at_ms: now.0,
            expires_at_ms: now.0.saturating_add(new.days * MS_PER_DAY),
            label: Some(new.label),
            role: Some(new.role),
            address: None,
            user_agent: None,
        };
        let raw = self.issue(access.person, &body).await?;
        let credential = Credential::from_item(&raw.to_item(&body)?)?;
        Ok((credential, raw))
    }
}

fn own_name(access: &Access) -> Result<PersonName, PeopleError> {
    if access.is_admin_token() {
        return Err(PeopleError::NoAccount);
    }
    Ok(access.name.parse()?)
}
