//! E-mail through an SMTP relay. The library's types stay in here.

use std::time::Duration;

use homeport_systems::alerts::{DeliveryError, Email};
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

/// How long each step of a conversation may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How the connection to a relay is kept from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// It begins in plain text and is encrypted before anything is said; else nothing is sent.
    Starttls,
    /// It is encrypted from the start.
    Implicit,
    /// It is not encrypted.
    None,
}

/// A relay and who sends through it.
#[derive(Clone)]
pub struct SmtpRelay {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    host: String,
}

/// Why a relay cannot be used as it is set.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SmtpRelayError(String);

impl SmtpRelay {
    /// A relay, which is not asked anything before there is something to send.
    ///
    /// # Errors
    /// When the sender is no address, or there are no root certificates to check the relay with.
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

    pub(super) async fn send(&self, email: &Email) -> Result<(), DeliveryError> {
        let refused = |error: &dyn std::fmt::Display| DeliveryError::Refused(error.to_string());
        let to: Address = email.to.as_str().parse().map_err(|error| refused(&error))?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(email.subject.as_str())
            // The same however often it is tried: who gets it twice may see that it is one.
            .message_id(Some(format!("<{}@homeport>", email.id)))
            .header(ContentType::TEXT_PLAIN)
            .body(email.text.clone())
            .map_err(|error| refused(&error))?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(refused(&error)),
            // The relay may have taken it all before it fell silent.
            Err(error) if error.is_timeout() => Err(DeliveryError::Unanswered(error.to_string())),
            Err(error) => Err(DeliveryError::Busy {
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
