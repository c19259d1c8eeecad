//! Which addresses may be asked, in every spelling.

use std::net::IpAddr;

use reqwest::Url;

use super::super::{AddressGuard, Forbidden, Special};

fn check(guard: &AddressGuard, url: &str) -> Result<(), Forbidden> {
    guard.check(&Url::parse(url).unwrap())
}

#[test]
fn every_special_address_is_known_as_what_it_is() {
    let known = |text: &str| Special::of(text.parse::<IpAddr>().unwrap());
    for (special, addresses) in [
        (Special::Loopback, "127.0.0.1 127.255.255.255 ::1"),
        (
            Special::Private,
            "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 fc00:: fdff::1",
        ),
        (Special::Private, "fd00:ec1::254 fd20:ce::253 64:ff9b::10.0.0.1"),
        (Special::Shared, "100.64.0.0 100.100.100.199 100.127.255.255"),
        (Special::LinkLocal, "169.254.0.0 169.254.169.254 169.254.255.255 fe80::1 febf::1 64:ff9b::169.254.169.254"),
        (Special::Metadata, "168.63.129.16 100.100.100.200 fd00:ec2::254 fd00:ec2::23 fd20:ce::254"),
        (Special::Multicast, "224.0.0.1 239.255.255.255 255.255.255.255 ff02::1"),
        (Special::Embedded, "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 ::2 2001::1 2002:7f00:1::"),
        (Special::Reserved, "0.0.0.0 0.1.2.3 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1"),
        (Special::Reserved, "203.0.113.1 240.0.0.1 255.255.255.254 :: 100::1 64:ff9b:1::1 2001:db8::1 2001:10::1"),
        (Special::Reserved, "3fff::1 5f00::1 fec0::1 ::ffff:0:127.0.0.1 4000::1"),
    ] {
        for address in addresses.split(' ') {
            assert_eq!(known(address), Some(special), "{address}");
        }
    }
}

#[test]
fn the_neighbours_of_special_addresses_are_of_the_open_internet() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "168.63.129.15",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00::1",
        "3ffe::1",
        "64:ff9b::8.8.8.8",
    ] {
        assert_eq!(Special::of(address.parse().unwrap()), None, "{address}");
    }
}

#[test]
fn what_an_address_itself_shows_is_refused_at_once() {
    let guard = AddressGuard::new();
    for (url, why) in [
        ("ftp://example.com/", Forbidden::Scheme),
        ("file:///etc/passwd", Forbidden::Scheme),
        ("data:text/plain,x", Forbidden::Scheme),
        ("gopher://example.com/", Forbidden::Scheme),
        ("http://user@example.com/", Forbidden::Credentials),
        ("http://user:word@example.com/", Forbidden::Credentials),
        ("http://:word@example.com/", Forbidden::Credentials),
        ("http://example.com:22/", Forbidden::Port(22)),
        ("https://example.com:6379/", Forbidden::Port(6379)),
        ("http://127.0.0.1/", Forbidden::Address(Special::Loopback)),
        ("http://2130706433/", Forbidden::Address(Special::Loopback)),
        ("http://0x7f.1/", Forbidden::Address(Special::Loopback)),
        ("http://[::ffff:8.8.8.8]/", Forbidden::Address(Special::Embedded)),
        ("http://169.254.169.254/latest/meta-data/", Forbidden::Address(Special::LinkLocal)),
    ] {
        assert_eq!(check(&guard, url), Err(why), "{url}");
    }
    for url in ["http://example.com/", "https://example.com/", "https://example.com:80/", "http://8.8.8.8/"] {
        assert_eq!(check(&guard, url), Ok(()), "{url}");
    }
}

#[test]
fn ports_and_encryption_are_as_configured() {
    let guard = AddressGuard::new().ports([8443]);
    assert_eq!(check(&guard, "https://example.com:8443/"), Ok(()));
    assert_eq!(check(&guard, "https://example.com/"), Err(Forbidden::Port(443)));
    assert_eq!(check(&AddressGuard::new().any_port(), "http://example.com:22/"), Ok(()));
    let guard = AddressGuard::new().https_only();
    assert_eq!(check(&guard, "http://example.com/"), Err(Forbidden::NotEncrypted));
    assert_eq!(check(&guard, "https://example.com/"), Ok(()));
}

#[test]
fn networks_are_allowed_with_all_their_addresses_and_no_others() {
    let guard = AddressGuard::new();
    let guard = guard.allow("10.1.2.3/16").unwrap().allow("fd00::/8").unwrap().allow("192.168.0.7").unwrap();
    for url in ["http://10.1.0.0/", "http://10.1.255.255/", "http://[fd12::1]/", "http://192.168.0.7/"] {
        assert_eq!(check(&guard, url), Ok(()), "{url}");
    }
    // However it is written, it is the address that was allowed.
    assert_eq!(check(&guard, "http://[::ffff:10.1.0.1]/"), Ok(()));
    for url in ["http://10.2.0.0/", "http://10.0.255.255/", "http://[fc00::1]/", "http://192.168.0.8/"] {
        assert_eq!(check(&guard, url), Err(Forbidden::Address(Special::Private)), "{url}");
    }
    let all = AddressGuard::new().allow("0.0.0.0/0").unwrap().allow("::/0").unwrap();
    assert_eq!(check(&all, "http://127.0.0.1/"), Ok(()));
    assert_eq!(check(&all, "http://[fe80::1]/"), Ok(()));
}

#[test]
fn private_networks_can_be_allowed_as_a_whole_without_what_holds_credentials() {
    let guard = AddressGuard::new().allow_private();
    for url in ["http://127.0.0.1/", "http://10.0.0.1/", "http://[fd00::1]/", "http://[::1]/", "http://100.64.0.1/"] {
        assert_eq!(check(&guard, url), Ok(()), "{url}");
    }
    for (url, special) in [
        ("http://169.254.169.254/", Special::LinkLocal),
        ("http://168.63.129.16/", Special::Metadata),
        ("http://100.100.100.200/", Special::Metadata),
        ("http://[fd00:ec2::254]/", Special::Metadata),
        ("http://[fd20:ce::254]/", Special::Metadata),
        ("http://[fe80::1]/", Special::LinkLocal),
        ("http://[::ffff:127.0.0.1]/", Special::Embedded),
        ("http://0.0.0.0/", Special::Reserved),
        ("http://224.0.0.1/", Special::Multicast),
    ] {
        assert_eq!(check(&guard, url), Err(Forbidden::Address(special)), "{url}");
    }
    let opened = guard.allow("169.254.169.254").unwrap();
    assert_eq!(check(&opened, "http://169.254.169.254/"), Ok(()));
}

#[test]
fn what_is_allowed_is_a_network_an_address_or_a_host() {
    for text in ["localhost", "Wiki.Internal", "wiki.internal.", "my_host", "bücher.example", "::1", "10.0.0.0/8"] {
        assert!(AddressGuard::new().allow(text).is_ok(), "{text}");
    }
    for text in [
        "",
        " ",
        "10.0.0.0/33",
        "::/129",
        "10.0.0/8",
        "10.0.0.0/-1",
        "host/8",
        "http://host",
        "host:80",
        "*.internal",
        "user@host",
        "host?x",
        "host#x",
        "[::1]",
        "0x7f.1",
        "a b",
    ] {
        assert!(AddressGuard::new().allow(text).is_err(), "{text}");
    }
}
