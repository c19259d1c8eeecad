//! TLS to the server, by rustls. A certificate is checked whenever TLS is used, also where the address only asks for it:
//! without the check it would keep nobody out.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connector that trusts the machine's authorities, or only those in a file.
///
/// # Errors
/// The file cannot be read, or has no certificate in it.
pub(super) fn connector(authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(file) => {
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| error.to_string())?;
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
            if roots.is_empty() {
                return Err("the file of authorities has no certificate in it".to_owned());
            }
        }
        None => {
            // A machine without authorities can still reach a server that does not use TLS.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(connector(Some(file.path())).err().unwrap().contains("no certificate"));
        assert!(connector(Some(Path::new("/nowhere/at/all.pem"))).is_err());
    }

    #[test]
    fn the_machines_authorities_will_do() {
        assert!(connector(None).is_ok());
    }
}
