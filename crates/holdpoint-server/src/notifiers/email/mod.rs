//! Mail: a letter when a pause opens, and another in its thread when it ends. A letter has a link to the pause's page;
//! opening it decides nothing, so that programs which look into letters may follow it.

mod address;
mod letter;

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_runtime::ports::notifier::{Delivery, Notice, NoticeKind, Notifier};
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::{AsyncSmtpTransport, Error as SmtpError};
use lettre::{AsyncTransport as _, Tokio1Executor};
use secrecy::{ExposeSecret as _, SecretString};

use address::{Encryption, ServerAddress};

/// How long each step of a conversation with a mail server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a whole attempt may take.
const ATTEMPT: Duration = Duration::from_secs(30);

/// The most people that a letter goes to.
pub const RECIPIENTS_MAX: usize = 32;

/// People who are told by mail.
pub struct Email {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
    public_url: Option<String>,
}

/// What an operator says about mail.
pub struct EmailSettings {
    /// The mail server: `smtps://USER@HOST:465`, `smtp+starttls://USER@HOST:587`, or `smtp://HOST:25` on this machine.
    pub server: String,
    /// The user's password, where the address names a user.
    pub password: Option<SecretString>,
    /// Who writes, such as `holdpoint <holdpoint@example.com>`.
    pub from: String,
    /// Who is written to.
    pub to: Vec<String>,
    /// The address by which people reach this server; without one, letters have no link to it.
    pub public_url: Option<String>,
}

/// Why mail cannot be sent as it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEmail {
    /// The server's address cannot be read.
    #[error(
        "the mail server must be smtps://USER@HOST:PORT or smtp+starttls://USER@HOST:PORT, without a password in it"
    )]
    Server,
    /// Letters and a password would go out unencrypted.
    #[error("smtp:// is not encrypted and only goes to this machine: write smtps:// or smtp+starttls://")]
    Unencrypted,
    /// A user has no password, or a password no user.
    #[error("a user in the mail server's address and a password go together")]
    Credentials,
    /// Somebody's address cannot be read.
    #[error("`{0}` needs an address such as `Ana <ana@example.com>`")]
    Address(&'static str),
    /// Nobody is written to, or too many are.
    #[error("a letter goes to 1 to {RECIPIENTS_MAX} people")]
    Recipients,
    /// No encrypted connection can be made.
    #[error("no TLS can be had")]
    Tls,
}

impl Email {
    /// People at these addresses.
    ///
    /// # Errors
    /// What an operator must change.
    pub fn new(settings: EmailSettings) -> Result<Self, BadEmail> {
        if !(1..=RECIPIENTS_MAX).contains(&settings.to.len()) {
            return Err(BadEmail::Recipients);
        }
        let mailbox = |text: &str, field| text.parse::<Mailbox>().map_err(|_| BadEmail::Address(field));
        Ok(Self {
            transport: transport(&settings)?,
            from: mailbox(&settings.from, "from")?,
            to: settings.to.iter().map(|to| mailbox(to, "to")).collect::<Result<_, _>>()?,
            public_url: settings.public_url,
        })
    }

    /// Asks the mail server whether it takes letters from here.
    ///
    /// # Errors
    /// Why not, without the password.
    pub async fn test(&self) -> Result<(), String> {
        match tokio::time::timeout(ATTEMPT, self.transport.test_connection()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("the mail server does not answer".to_owned()),
            Ok(Err(error)) => Err(why(&error)),
            Err(_) => Err("the mail server took too long".to_owned()),
        }
    }
}

fn transport(settings: &EmailSettings) -> Result<AsyncSmtpTransport<Tokio1Executor>, BadEmail> {
    let server = ServerAddress::parse(&settings.server)?;
    let builder = match server.encryption {
        Encryption::Whole => AsyncSmtpTransport::<Tokio1Executor>::relay(&server.host).map_err(|_| BadEmail::Tls)?,
        Encryption::StartTls => {
            AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(&server.host).map_err(|_| BadEmail::Tls)?
        }
        Encryption::None => AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host),
    };
    let builder = builder.port(server.port).timeout(Some(PATIENCE));
    let builder = match (server.user, &settings.password) {
        (Some(user), Some(password)) => {
            builder.credentials(Credentials::new(user, password.expose_secret().to_owned()))
        }
        (None, None) => builder,
        _ => return Err(BadEmail::Credentials),
    };
    Ok(builder.build())
}

#[async_trait]
impl Notifier for Email {
    async fn deliver(&self, notice: &Notice) -> Delivery {
        // What is over is not asked any more: its end is told in a letter of its own.
        if notice.key.kind == NoticeKind::Opened && !notice.pause.pause.is_open() {
            return Delivery::Delivered { receipt: None };
        }
        let letter = match letter::write(notice, &self.from, &self.to, self.public_url.as_deref()) {
            Ok(letter) => letter,
            Err(why) => return Delivery::GaveUp { why },
        };
        match tokio::time::timeout(ATTEMPT, self.transport.send(letter)).await {
            // Whether it was sent at all, for the letter about its end.
            Ok(Ok(_)) => Delivery::Delivered { receipt: Some("sent".to_owned()) },
            Ok(Err(error)) if is_final(&error) => Delivery::GaveUp { why: why(&error) },
            Ok(Err(error)) => Delivery::Retry { after: None, why: why(&error) },
            Err(_) => Delivery::Retry { after: None, why: "the mail server took too long".to_owned() },
        }
    }
}

/// Whether the server will never take the letter. That it refuses the login says nothing about the letter, and an operator
/// can mend it.
fn is_final(error: &SmtpError) -> bool {
    let is_login = error.status().is_some_and(|code| matches!(u16::from(code), 530 | 534 | 535 | 538));
    error.is_permanent() && !is_login
}

/// What went wrong, without what the server said: it may repeat what it was told.
fn why(error: &SmtpError) -> String {
    match error.status() {
        Some(code) => format!("the mail server answered {code}"),
        None if error.is_timeout() => "the mail server took too long".to_owned(),
        None if error.is_tls() => {
            "no encrypted connection to the mail server: its certificate may be at fault".to_owned()
        }
        None if error.is_client() => {
            "the mail server does not offer what is needed, such as a way to log in".to_owned()
        }
        None if error.is_response() => "the mail server's answer cannot be read".to_owned(),
        None => "the mail server was not reached, or the connection broke off".to_owned(),
    }
}
