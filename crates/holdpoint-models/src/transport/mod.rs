//! Carries a request to a provider and the bytes of its answer to a reader: with time-outs, a bound on the answer, and
//! further attempts as long as nothing was told. It knows no protocol, and follows no redirects.

mod retry;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::{FutureExt as _, StreamExt as _};
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::model::{DeltaSink, ModelFault, ModelReply};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::address::{Address, BadProvider};
use crate::problem::{Problem, Whom, message_of, will_last};
use crate::reader::{Assemble, Reader};
use crate::told;

/// How patient a client is, and how much it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long the provider may take until its answer begins. Servers that load a model first are slow here.
    pub first_byte_timeout: Duration,
    /// How long the provider may be silent in the middle of its answer.
    pub idle_timeout: Duration,
    /// How long a reply may take in all, with every attempt and every wait.
    pub total_timeout: Duration,
    /// The largest answer that is read.
    pub response_bytes_max: usize,
    /// How often a reply is asked for; one for no second attempt.
    pub attempts_max: u32,
    /// The wait before the second attempt; each further one is twice as long.
    pub wait_first: Duration,
    /// The longest wait between attempts that nobody asked for.
    pub wait_max: Duration,
    /// The longest wait that a provider may ask for with `Retry-After`. Asked for more, the client gives up at once.
    pub retry_after_max: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(120),
            total_timeout: Duration::from_secs(30 * 60),
            response_bytes_max: 64 << 20,
            attempts_max: 4,
            wait_first: Duration::from_millis(500),
            wait_max: Duration::from_secs(20),
            retry_after_max: Duration::from_secs(60),
        }
    }
}

/// A way to a provider.
#[derive(Clone)]
pub(crate) struct Http {
    /// Why there is none is told when it is needed: a server with other models must start without certificates.
    client: Result<Client, Arc<str>>,
    settings: HttpSettings,
    clock: Arc<dyn Clock>,
}

/// One request, which can be sent again.
pub(crate) struct Outgoing {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// How much of an error's body is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

impl Http {
    pub(crate) fn new(address: &Address, settings: HttpSettings, clock: Arc<dyn Clock>) -> Self {
        let mut client = Client::builder()
            .connect_timeout(settings.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // A compressed stream comes in lumps.
            .no_gzip()
            .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")));
        if address.is_loopback() {
            client = client.no_proxy();
        }
        if !address.is_encrypted() {
            // A machine without certificates can still ask its neighbour.
            client = client.tls_certs_only([]);
        }
        Self { client: client.build().map_err(|problem| reason(&problem).into()), settings, clock }
    }

    /// Asks until there is a reply, or it is plain that there will be none.
    pub(crate) async fn ask<A: Assemble>(
        &self,
        whom: &Whom,
        request: Outgoing,
        assembler: impl Fn() -> A,
        deltas: &DeltaSink,
    ) -> Result<ModelReply, ModelFault> {
        let (deltas, is_told) = told::watched(deltas);
        let attempts = AtomicU32::new(0);
        let asking = async {
            loop {
                let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
                let problem = match self.attempt(&request, assembler(), &deltas).await {
                    Ok(reply) => return Ok(reply),
                    Err(problem) => problem,
                };
                // Words that were told cannot be taken back: a second reply would go on where the first one broke off.
                let wait = if is_told.get() {
                    None
                } else {
                    retry::wait_before_next(&self.settings, &problem, attempt, retry::chance())
                };
                let Some(wait) = wait else { return Err(problem) };
                tracing::info!(
                    model = %whom.name, attempt, wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    "the model gave no reply and is asked again"
                );
                self.clock.sleep(wait).await;
            }
        };
        let limit = self.settings.total_timeout;
        let reply = self.within(limit, "gave no whole reply", asking).await;
        reply.and_then(|reply| reply).map_err(|problem| problem.into_fault(whom, attempts.load(Ordering::Relaxed)))
    }

    async fn attempt<A: Assemble>(
        &self,
        request: &Outgoing,
        assembler: A,
        deltas: &DeltaSink,
    ) -> Result<ModelReply, Problem> {
        let client = self.client.as_ref().map_err(|reason| Problem::NoClient { reason: reason.clone() })?;
        let sent = client
            .post(request.url.clone())
            .headers(request.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(request.body.clone())
            .send();
        let response = self.within(self.settings.first_byte_timeout, "did not begin to answer", sent).await?;
        let response = response.map_err(|source| Problem::Unreachable { source })?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        self.read(response, assembler, deltas).await
    }

    async fn read<A: Assemble>(
        &self,
        response: Response,
        assembler: A,
        deltas: &DeltaSink,
    ) -> Result<ModelReply, Problem> {
        let mut reader = Reader::new(assembler);
        let mut bytes_left = self.settings.response_bytes_max;
        let mut body = Box::pin(response.bytes_stream());
        while !reader.is_done() {
            let next = self.within(self.settings.idle_timeout, "said nothing more", body.next()).await?;
            let Some(chunk) = next else { break };
            let chunk = chunk.map_err(|source| Problem::Broken { source })?;
            let too_large = Problem::BodyTooLarge { bytes_max: self.settings.response_bytes_max };
            bytes_left = bytes_left.checked_sub(chunk.len()).ok_or(too_large)?;
            let mut told = Vec::new();
            let read = reader.push(&chunk, &mut told);
            told.into_iter().for_each(|delta| deltas.tell(delta));
            read?;
        }
        // Where the end is already here the connection can be used again; nobody waits for it.
        let _ = body.next().now_or_never();
        let (told, reply) = reader.finish();
        told.into_iter().for_each(|delta| deltas.tell(delta));
        reply
    }

    /// What a status that is no success says.
    async fn refused(&self, response: Response) -> Problem {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let should_retry = header("x-should-retry");
        let wait_ms = header("retry-after-ms").and_then(|ms| ms.trim().parse::<u64>().ok()).map(Duration::from_millis);
        let wait = wait_ms.or_else(|| {
            retry::retry_after(&header(RETRY_AFTER.as_str())?, header(DATE.as_str()).as_deref(), self.clock.now())
        });
        let body = self.error_body(response).await;
        let (message, is_lasting) = match serde_json::from_slice::<Value>(&body) {
            Ok(body) => (message_of(&body).unwrap_or_default(), will_last(&body["error"])),
            Err(_) => (String::from_utf8_lossy(&body).into_owned(), false),
        };
        // A used-up quota comes with the status of a full house.
        let will_last = should_retry.as_deref() == Some("false") || (status == 429 && is_lasting);
        Problem::Status { status, message, wait, will_last }
    }

    async fn error_body(&self, response: Response) -> Vec<u8> {
        let mut body = Box::pin(response.bytes_stream());
        let mut read: Vec<u8> = Vec::new();
        while read.len() < ERROR_BYTES_MAX {
            match self.within(self.settings.idle_timeout, "", body.next()).await {
                Ok(Some(Ok(chunk))) => read.extend_from_slice(&chunk),
                // The status says enough.
                Ok(Some(Err(_)) | None) | Err(_) => break,
            }
        }
        read.truncate(ERROR_BYTES_MAX);
        read
    }

    async fn within<T>(
        &self,
        limit: Duration,
        what: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, Problem> {
        match select(Box::pin(work), self.clock.sleep(limit)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(Problem::TimedOut { what, after: limit }),
        }
    }
}

/// What is wrong, down to its cause.
fn reason(problem: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(problem), |problem| problem.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A header that is never shown: not in logs, not in errors.
pub(crate) fn secret_header(
    prefix: &str,
    secret: &SecretString,
    variable: &'static str,
) -> Result<HeaderValue, BadProvider> {
    let text = format!("{prefix}{}", secret.expose_secret());
    let mut value = HeaderValue::from_str(&text).map_err(|_| BadProvider::Header { variable })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A key as it was set, without the white space that files and shells leave around it; `None` where there is none.
pub(crate) fn tidy_key(key: Option<SecretString>) -> Option<SecretString> {
    let key = key?;
    let tidy = key.expose_secret().trim();
    (!tidy.is_empty()).then(|| SecretString::from(tidy.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_header_does_not_show_itself() {
        let header = secret_header("Bearer ", &"sk-secret".into(), "KEY").unwrap();
        assert_eq!((format!("{header:?}").as_str(), header.as_bytes()), ("Sensitive", &b"Bearer sk-secret"[..]));
    }

    #[test]
    fn a_key_is_tidied_and_one_that_is_empty_is_none() {
        let tidy = |key: &str| tidy_key(Some(key.into())).map(|key| key.expose_secret().to_owned());
        assert_eq!(tidy(" sk-1\n").as_deref(), Some("sk-1"));
        assert_eq!((tidy(""), tidy(" \n"), tidy_key(None).is_none()), (None, None, true));
    }
}
