//! Who is at the other end of a connection that lasts, for as long as the credential holds that they showed.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Access, Caller};
use crate::problem::Problem;

/// Who is at the other end.
pub(crate) struct Identity {
    pub(crate) caller: Caller,
    /// What they showed, so that it can be seen whether it still holds.
    token: Option<SecretString>,
}

impl Identity {
    /// Who shows the credential of a request; `None` where none is shown.
    pub(crate) async fn shown(access: &Access, headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        if access.is_solo() {
            return Ok(Some(Self { caller: Caller::solo(), token: None }));
        }
        match Access::shown(headers)? {
            None => Ok(None),
            Some(token) => Self::with(access, SecretString::from(token)).await.map(Some),
        }
    }

    /// Whose credential this is.
    pub(crate) async fn with(access: &Access, token: SecretString) -> Result<Self, Problem> {
        let caller = access.caller_with(token.expose_secret()).await?;
        Ok(Self { caller, token: Some(token) })
    }

    /// Whether the credential is still this caller's: it may have run out since it was shown.
    pub(crate) async fn holds(&self, access: &Access) -> bool {
        let Some(token) = &self.token else { return true };
        match access.caller_with(token.expose_secret()).await {
            Ok(caller) => caller == self.caller,
            // The identity provider is out of reach for now; what held a moment ago is taken to hold.
            Err(problem) => problem.status() == StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Ends when the credential no longer holds, which is looked at so often.
    pub(crate) async fn ended(&self, access: &Access, every: Duration) {
        if self.token.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(every).await;
            if !self.holds(access).await {
                return;
            }
        }
    }
}
