//! A client that cannot be led astray: every request of it is checked, and so is every name that it resolves.

use std::sync::Arc;

use reqwest::{Client, Method, RequestBuilder, Url};

use crate::http::client::{ClientFault, client_builder};
use crate::http::guard::lookup::CheckedResolver;
use crate::http::guard::{AddressGuard, Forbidden};

/// Sends requests to addresses that a guard lets pass. Follows no redirect and uses no proxy, behind which nobody could
/// say where a request goes. Cheap to clone.
#[derive(Clone)]
pub struct GuardedClient {
    guard: AddressGuard,
    client: Client,
}

impl GuardedClient {
    /// A client that this guard watches over.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub fn new(guard: AddressGuard) -> Result<Self, ClientFault> {
        let resolver = Arc::new(CheckedResolver(guard.clone()));
        let client = client_builder().no_proxy().dns_resolver(resolver).build()?;
        Ok(Self { guard, client })
    }

    /// Begins a request. Whether a name leads to a forbidden address shows when it is sent: see [`Forbidden::behind`].
    ///
    /// # Errors
    /// Why the address may not be asked.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Forbidden> {
        self.guard.check(&url)?;
        Ok(self.client.request(method, url))
    }
}
