//! E-mail through an SMTP relay. No type of the SMTP library leaves this module.

use std::time::Duration;

use homeport_systems::alerts::Email;
use homeport_systems::outbox::SendError;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

/// Timeout of each step of an SMTP conversation.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How the connection to a relay is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// The connection is upgraded with STARTTLS; nothing is sent if the relay does not support it.
    Starttls,
    /// TLS from the start.
    Implicit,
    /// No encryption.
    None,
}

/// A relay and the sender's address.
#[derive(Clone)]
pub struct SmtpRelay {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    host: String,
}

/// Why the settings of a relay are invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SmtpRelayError(String);

impl SmtpRelay {
    /// A relay. The first connection is made for the first e-mail.
    ///
    /// # Errors
    /// If the sender is not a valid address, or there are no root certificates.
    pub fn new(
        host: &str,
        port: u16,
        tls: SmtpTls,
        credentials: Option<(String, String)>,
        from: &str,
    ) -> Result<Self, SmtpRelayError> {
        let from = from
            .parse()
            .map_err(|error| SmtpRelayError(format!("alerts.smtp_from: {error}")))?;
        let parameters = || {
            TlsParameters::new(host.to_owned())
                .map_err(|error| SmtpRelayError(format!("TLS for {host}: {error}")))
        };
        let tls = match tls {
            SmtpTls::Starttls => Tls::Required(parameters()?),
            SmtpTls::Implicit => Tls::Wrapper(parameters()?),
            SmtpTls::None => Tls::None,
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(port)
            .tls(tls)
            .timeout(Some(TIMEOUT));
        if let Some((user, password)) = credentials {
            builder = builder.credentials(Credentials::new(user, password));
        }
        Ok(Self {
            transport: builder.build(),
            from,
            host: host.to_owned(),
        })
    }

    pub(super) async fn send(&self, email: &Email) -> Result<(), SendError> {
        let permanent = |error: &dyn std::fmt::Display| SendError::Refused(error.to_string());
        let to: Address = email
            .to
            .as_str()
            .parse()
            .map_err(|error| permanent(&error))?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(email.subject.as_str())
            // The same in every attempt, so that mail clients recognize repeats.
            .message_id(Some(format!("<{}@homeport>", email.id)))
            .header(ContentType::TEXT_PLAIN)
            .body(email.text.clone())
            .map_err(|error| permanent(&error))?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(permanent(&error)),
            // The relay may have accepted the message before the timeout.
            Err(error) if error.is_timeout() => Err(SendError::Unanswered(error.to_string())),
            Err(error) => Err(SendError::Busy {
                retry_after: None,
                reason: error.to_string(),
            }),
        }
    }
}

impl std::fmt::Debug for SmtpRelay {
    /// Leaves the credentials out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SmtpRelay")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
