//! Keeps requests whose address came from outside away from networks that the outside has no business in.
//!
//! The address that was checked is the address that is connected to: names are resolved here, once, and a name that
//! leads to one forbidden address is refused altogether.

mod allowance;
mod client;
mod lookup;
mod special;

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Arc;

use reqwest::Url;

pub use allowance::BadAllowance;
pub use client::GuardedClient;
pub use lookup::Lookup;
pub use special::Special;

use allowance::Allowance;
use lookup::SystemLookup;

/// Says which addresses may be asked. Cheap to clone.
///
/// ```
/// use holdpoint_tools::http::AddressGuard;
///
/// let guard = AddressGuard::new().allow("10.1.0.0/16")?.allow("printer.internal")?;
/// assert!(guard.check(&"https://example.com/".parse()?).is_ok());
/// assert!(guard.check(&"http://10.1.2.3/".parse()?).is_ok());
/// assert!(guard.check(&"http://169.254.169.254/".parse()?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AddressGuard {
    allowed: Arc<[Allowance]>,
    reach: Reach,
    ports: Ports,
    needs_https: bool,
    lookup: Arc<dyn Lookup>,
}

/// What is let pass without being named.
#[derive(Clone, Copy)]
enum Reach {
    OpenInternet,
    PrivateNetworks,
}

#[derive(Clone)]
enum Ports {
    These(Arc<[u16]>),
    Any,
}

/// Why an address may not be asked. Says what a name leads to, never to which address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forbidden {
    /// It is of another kind.
    #[error("only http and https addresses may be asked")]
    Scheme,
    /// It is not encrypted.
    #[error("only https addresses may be asked")]
    NotEncrypted,
    /// It has a user name or a password.
    #[error("an address with a user name or password may not be asked")]
    Credentials,
    /// It has a port that is not open to requests.
    #[error("port {0} may not be asked")]
    Port(u16),
    /// It is, or its name leads to, an address that is not of the open internet.
    #[error("the address is {0}, which may not be asked")]
    Address(Special),
}

impl Forbidden {
    /// The refusal behind an error of a [`GuardedClient`]'s request, if that is what it was.
    pub fn behind(error: &reqwest::Error) -> Option<&Self> {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(forbidden) = error.downcast_ref() {
                return Some(forbidden);
            }
            cause = error.source();
        }
        None
    }
}

impl Default for AddressGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl AddressGuard {
    /// How many addresses of one name are looked at.
    const ADDRESSES_MAX: usize = 32;

    /// Allows the open internet, on the ports 80 and 443, and nothing else.
    pub fn new() -> Self {
        Self {
            allowed: Arc::new([]),
            reach: Reach::OpenInternet,
            ports: Ports::These(Arc::new([80, 443])),
            needs_https: false,
            lookup: Arc::new(SystemLookup),
        }
    }

    /// Allows an address, a network (`10.0.0.0/8`) or a host by its exact name. A host that is allowed may lead to
    /// private and loopback addresses; link-local and metadata ones are allowed by address only.
    ///
    /// # Errors
    /// The text is none of them.
    pub fn allow(mut self, what: &str) -> Result<Self, BadAllowance> {
        self.allowed = self.allowed.iter().cloned().chain([what.parse()?]).collect();
        Ok(self)
    }

    /// Allows all private, loopback and carrier-shared addresses. Link-local and metadata ones stay forbidden, since
    /// credentials lie there; so do those that are nobody's. [`AddressGuard::allow`] opens them one by one.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.reach = Reach::PrivateNetworks;
        self
    }

    /// Allows these ports in place of 80 and 443.
    #[must_use]
    pub fn ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports = Ports::These(ports.into_iter().collect());
        self
    }

    /// Allows every port.
    #[must_use]
    pub fn any_port(mut self) -> Self {
        self.ports = Ports::Any;
        self
    }

    /// Refuses what is not encrypted.
    #[must_use]
    pub fn https_only(mut self) -> Self {
        self.needs_https = true;
        self
    }

    /// Resolves names with this in place of the system's resolver.
    #[must_use]
    pub fn lookup(mut self, lookup: impl Lookup) -> Self {
        self.lookup = Arc::new(lookup);
        self
    }

    /// Checks what can be seen in the address itself. A name is checked when it is resolved, by a [`GuardedClient`].
    ///
    /// # Errors
    /// Why the address may not be asked.
    pub fn check(&self, url: &Url) -> Result<(), Forbidden> {
        match url.scheme() {
            "https" => {}
            "http" if self.needs_https => return Err(Forbidden::NotEncrypted),
            "http" => {}
            _ => return Err(Forbidden::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Forbidden::Credentials);
        }
        let port = url.port_or_known_default().unwrap_or(0);
        match &self.ports {
            Ports::These(ports) if !ports.contains(&port) => return Err(Forbidden::Port(port)),
            Ports::These(_) | Ports::Any => {}
        }
        let host = url.host_str().ok_or(Forbidden::Scheme)?;
        // Every spelling of an IPv4 address was made the usual one when the address was read.
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check_address(address),
            Err(_) => Ok(()),
        }
    }

    fn check_address(&self, address: IpAddr) -> Result<(), Forbidden> {
        let is_allowed = || self.allowed.iter().any(|allowance| allowance.has_address(address));
        match (Special::of(address), self.reach) {
            (None, _) => Ok(()),
            (Some(special), Reach::PrivateNetworks) if special.is_of_a_network() => Ok(()),
            (Some(_), _) if is_allowed() => Ok(()),
            (Some(special), _) => Err(Forbidden::Address(special)),
        }
    }

    fn check_resolved(&self, host: &str, address: IpAddr) -> Result<(), Forbidden> {
        let is_host_allowed = || self.allowed.iter().any(|allowance| allowance.has_host(host));
        match self.check_address(address) {
            Err(Forbidden::Address(special)) if special.is_of_a_network() && is_host_allowed() => Ok(()),
            checked => checked,
        }
    }
}
