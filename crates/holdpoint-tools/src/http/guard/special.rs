//! Which addresses are not of the open internet, by the registries of special addresses (RFC 6890 and what followed).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What makes an address one that a stranger must not lead us to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// This machine.
    Loopback,
    /// A private network, IPv6's unique local ones included.
    Private,
    /// Shared by the customers of a provider (100.64.0.0/10).
    Shared,
    /// This link only. Cloud machines find their credentials there.
    LinkLocal,
    /// A cloud's own service for its machines, at an address outside the link.
    Metadata,
    /// A group of machines, or all of them.
    Multicast,
    /// IPv4 inside IPv6, which says one thing to a check and another to a network.
    Embedded,
    /// Nobody's: unspecified, for documentation, for tests, or reserved.
    Reserved,
}

impl Special {
    /// What is special about an address; `None` for one of the open internet.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Whether servers are found there that somebody may want to ask. The others need the address itself to be allowed,
    /// because nobody leads there in earnest.
    pub(super) fn is_of_a_network(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::Shared)
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::Shared => "carrier-shared",
            Self::LinkLocal => "link-local",
            Self::Metadata => "cloud metadata",
            Self::Multicast => "multicast",
            Self::Embedded => "IPv4-in-IPv6",
            Self::Reserved => "reserved",
        })
    }
}

fn of_v4(address: Ipv4Addr) -> Option<Special> {
    match address.octets() {
        [127, ..] => Some(Special::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(Special::Private),
        [100, 100, 100, 200] => Some(Special::Metadata),
        [100, 64..=127, ..] => Some(Special::Shared),
        [169, 254, ..] => Some(Special::LinkLocal),
        [168, 63, 129, 16] => Some(Special::Metadata),
        [224..=239, ..] | [255, 255, 255, 255] => Some(Special::Multicast),
        [0, ..] | [240..=255, ..] => Some(Special::Reserved),
        [192, 0, 0, _] | [192, 0, 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Some(Special::Reserved),
        [198, 51, 100, _] | [203, 0, 113, _] => Some(Special::Reserved),
        _ => None,
    }
}

fn of_v6(address: Ipv6Addr) -> Option<Special> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Special::Loopback),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Special::Reserved),
        // Mapped and compatible.
        [0, 0, 0, 0, 0, 0xffff | 0, ..] => Some(Special::Embedded),
        // What a network with IPv6 alone gives for a host that has IPv4 alone: as open as the host itself.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            of_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Where clouds keep the credentials of their machines, within what is otherwise anybody's private network.
        [0xfd00, 0x0ec2, ..] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => Some(Special::Metadata),
        [0xfc00..=0xfdff, ..] => Some(Special::Private),
        [0xfe80..=0xfebf, ..] => Some(Special::LinkLocal),
        [0xff00..=0xffff, ..] => Some(Special::Multicast),
        // Tunnels that carry an IPv4 address: Teredo and 6to4.
        [0x2001, 0, ..] | [0x2002, ..] => Some(Special::Embedded),
        [0x2001, 0x0001..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some(Special::Reserved),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(Special::Reserved),
    }
}
