//! What an operator lets requests reach although it is not of the open internet: addresses, networks, hosts.

use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// One thing that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allowance {
    Network { base: IpAddr, prefix: u8 },
    Host(String),
}

/// The text is neither a network, nor an address, nor a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address, a network such as 10.0.0.0/8, or a host name without a port")]
pub struct BadAllowance(pub String);

impl Allowance {
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Self::Network { base: IpAddr::V4(base), prefix }, IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            (Self::Network { base: IpAddr::V6(base), prefix }, IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(*prefix)).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }

    pub(super) fn has_host(&self, host: &str) -> bool {
        matches!(self, Self::Host(allowed) if allowed == without_dot(host))
    }
}

impl FromStr for Allowance {
    type Err = BadAllowance;

    fn from_str(text: &str) -> Result<Self, BadAllowance> {
        let bad = || BadAllowance(text.chars().take(100).collect());
        if let Some((base, prefix)) = text.split_once('/') {
            let base: IpAddr = base.parse().map_err(|_| bad())?;
            let widest = if base.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= widest).ok_or_else(bad)?;
            return Ok(Self::Network { base, prefix });
        }
        if let Ok(base) = text.parse::<IpAddr>() {
            return Ok(Self::Network { base, prefix: if base.is_ipv4() { 32 } else { 128 } });
        }
        // A host as it looks in an address: lower case, and in ASCII.
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| bad())?;
        let host = url.host_str().ok_or_else(bad)?;
        let is_host_alone = url.as_str() == format!("http://{host}/") && host.parse::<IpAddr>().is_err();
        let has_plain_name = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'));
        if is_host_alone && has_plain_name { Ok(Self::Host(without_dot(host).to_owned())) } else { Err(bad()) }
    }
}

/// `host.` and `host` are the same.
fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}
