//! From names to addresses, with a check of each one.

use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::http::guard::AddressGuard;

/// Finds the addresses of a name.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of this host.
    ///
    /// # Errors
    /// There is no such host, or nobody could be asked.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks as the system does.
pub(super) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Gives a client only addresses that were checked, and these very ones.
pub(super) struct CheckedResolver(pub(super) AddressGuard);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            let mut found = guard.lookup.lookup(host).await?;
            found.truncate(AddressGuard::ADDRESSES_MAX);
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            for address in &found {
                guard.check_resolved(host, *address)?;
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
